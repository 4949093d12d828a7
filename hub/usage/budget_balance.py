"""Calculate the balance of budgets from terms, groups and charges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..records.calendar import Term, refill_of, span_of
from ..scheduling.model.snapshot import BudgetBalance, Group
from ..scheduling.quota.tree import GroupTree

Charged = Mapping[str, float]
"""Device-seconds in the ledger since the beginning of a period, by group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A lease that is not released, as far as the ledger lacks it.

    Attributes:
        until: when its time limit ends.
    """

    group: str
    devices: int
    charged_until: float
    until: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Current:
    """The period of a budget that runs now.

    Attributes:
        since: None between two terms.
        refills_at: when the next one begins, as far as that is known.
    """

    since: float | None
    refills_at: float | None


def periods(groups: Iterable[Group], terms: Sequence[Term], now: float) -> dict[str, Current]:
    """Of each group with a budget, the running period."""
    found: dict[str, Current] = {}
    for group in groups:
        if group.budget is not None:
            span = span_of(group.budget.period, terms, now)
            found[group.name] = Current(
                since=None if span is None else span[0],
                refills_at=refill_of(group.budget.period, terms, now),
            )
    return found


def starts(running: Mapping[str, Current]) -> frozenset[float]:
    return frozenset(each.since for each in running.values() if each.since is not None)


def left(
    groups: Sequence[Group],
    running: Mapping[str, Current],
    charged: Mapping[float, Charged],
    leases: Sequence[Open],
) -> tuple[BudgetBalance, ...]:
    """Of each group that has a budget; a group's use is that of all groups below as well.

    Between two terms there is no budget: what is missing denies.
    """
    tree = GroupTree(groups)

    def of(group: Group) -> BudgetBalance:
        since, refills_at = running[group.name].since, running[group.name].refills_at
        assert group.budget is not None
        if since is None:
            return BudgetBalance(group=group.name, budget=0.0, used=0.0, refills_at=refills_at)
        inside = tree.subtree(group.name)
        return BudgetBalance(
            group=group.name,
            budget=group.budget.device_seconds,
            used=sum(amount for name, amount in charged[since].items() if name in inside),
            running=sum(_to_come(lease, since) for lease in leases if lease.group in inside),
            refills_at=refills_at,
        )

    return tuple(of(group) for group in groups if group.budget is not None)


def _to_come(lease: Open, since: float) -> float:
    """Device-seconds that it would still use up to its time limit."""
    return lease.devices * max(0.0, lease.until - max(lease.charged_until, since))
