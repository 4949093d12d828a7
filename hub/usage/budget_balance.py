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
    """The part of a running lease that is not in the ledger yet.

    Attributes:
        until: end of its time limit.
    """

    group: str
    devices: int
    charged_until: float
    until: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Current:
    """The current period of a budget.

    Attributes:
        since: its start; None between two terms.
        refills_at: start of the next period, if known.
    """

    since: float | None
    refills_at: float | None


def periods(groups: Iterable[Group], terms: Sequence[Term], now: float) -> dict[str, Current]:
    """Return the current period of every group with a budget."""
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
    """Return the starts of the current periods."""
    return frozenset(period.since for period in running.values() if period.since is not None)


def left(
    groups: Sequence[Group],
    running: Mapping[str, Current],
    charged: Mapping[float, Charged],
    leases: Sequence[Open],
) -> tuple[BudgetBalance, ...]:
    """Return the balance of every budget; the usage of a group includes its descendants.

    Between two terms the budget is 0, so that no request starts.
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
    """Return the device-seconds from now to the time limit of a lease."""
    return lease.devices * max(0.0, lease.until - max(lease.charged_until, since))
