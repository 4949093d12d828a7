"""What people see of budgets: used, running, left, and a warning in time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..messages.requests import budget_warning
from ..records.calendar import Term, span_of
from ..scheduling.model.snapshot import BudgetBalance, Group
from ..scheduling.quota.tree import GroupTree
from ..schemas import BudgetOut

EARLY = 0.8
"""The part of a budget from which people are warned."""


def budgets_out(
    lefts: Iterable[BudgetBalance],
    groups: Sequence[Group],
    terms: Sequence[Term],
    names: Iterable[str],
    now: float,
) -> list[BudgetOut]:
    """Those that bind in the groups of these names, for people."""
    tree = GroupTree(groups)
    binding = {above.name for name in names for above in tree.ancestry(name)}
    found = []
    for left in lefts:
        budget = next(g.budget for g in groups if g.name == left.group)
        if left.group not in binding or budget is None:
            continue
        span = span_of(budget.period, terms, now)
        found.append(
            BudgetOut(
                group=left.group,
                period=budget.period.value,
                device_seconds=left.budget,
                used=round(left.used, 3),
                running=round(left.running, 3),
                left=round(max(0.0, left.budget - left.used), 3),
                starts_at=span[0] if span else None,
                ends_at=span[1] if span else None,
                warning=budget_warning(
                    left.group,
                    budget.period.value,
                    left.used / left.budget if left.budget else None,
                    early=EARLY,
                ),
            )
        )
    return found
