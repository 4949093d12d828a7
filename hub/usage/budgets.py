"""Budgets as users see them: used, running and left, with a warning when little is left."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ..groups.membership import Membership
from ..interfaces.clock import Clock
from ..interfaces.store import Store
from ..messages.requests import budget_warning
from ..records.calendar import Term, span_of
from ..records.identity import Identity
from ..scheduling.model.snapshot import BudgetBalance, Group
from ..scheduling.quota.tree import GroupTree
from ..schemas import BudgetOut

EARLY = 0.8
"""The used fraction of a budget that causes a warning."""


@dataclass(frozen=True, slots=True)
class BudgetQueries:
    """The budgets that bind the requests of one user."""

    store: Store
    clock: Clock
    membership: Membership

    def budgets(
        self, who: Identity, group: str = "", *, groups_of: Collection[str] | None = None
    ) -> list[BudgetOut]:
        """Return the budgets that bind in the user's groups, or in the named one of them.

        ``groups_of``: the user's groups, if the caller knows them already.
        """
        groups = self.store.groups()
        if all(known.budget is None for known in groups):
            return []
        # Before the transaction, which must not wait for JupyterHub.
        names = (
            {known.name for known in groups} if who.admin else self.membership.names(who, groups_of)
        )
        with self.store.together():
            names |= self.store.taught_by(who.name)
            if group:
                names &= {group}
            now = self.clock()
            balances, terms = self.store.budgets(now), self.store.terms()
            return budgets_out(balances, self.store.groups(), terms, names, now)


def budgets_out(
    balances: Iterable[BudgetBalance],
    groups: Sequence[Group],
    terms: Sequence[Term],
    names: Iterable[str],
    now: float,
) -> list[BudgetOut]:
    """Return the budgets that bind in the groups of these names."""
    tree = GroupTree(groups)
    binding = {above.name for name in names for above in tree.ancestry(name)}
    entries = []
    for balance in balances:
        budget = next(g.budget for g in groups if g.name == balance.group)
        if balance.group not in binding or budget is None:
            continue
        span = span_of(budget.period, terms, now)
        entries.append(
            BudgetOut(
                group=balance.group,
                period=budget.period.value,
                device_seconds=balance.budget,
                used=round(balance.used, 3),
                running=round(balance.running, 3),
                left=round(max(0.0, balance.budget - balance.used), 3),
                starts_at=span[0] if span else None,
                ends_at=span[1] if span else None,
                warning=budget_warning(
                    balance.group,
                    budget.period.value,
                    balance.used / balance.budget if balance.budget else None,
                    early=EARLY,
                ),
            )
        )
    return entries
