"""Usage during a simulation: decayed use for fair share, and budgets.

The simulation counts use from its start. Budget periods are those of the live service: weeks from
Monday in UTC, and the terms of the site, between which there is no budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import exp, inf, log

from ...records.calendar import Term, refill_of, span_of
from ...scheduling.model.snapshot import Budget, BudgetBalance, DecayedUsage, Group, PendingRequest
from ...scheduling.quota.accounting import HALF_LIFE
from ...scheduling.quota.tree import GroupTree
from .job_run import Run


@dataclass(slots=True)
class _OwnerUsage:
    """Usage of one owner in one group: decayed use at a moment, and devices held since."""

    at: float
    use: float = 0.0
    held: float = 0.0


class SimulatedUsage:
    """Decayed usage, including that of running jobs: a device-second halves with every half-life.

    Between two changes, use grows by the integral of ``quota.accounting.decayed``.
    """

    def __init__(self, half_life: float = HALF_LIFE) -> None:
        self._per_second = log(2) / half_life
        self._accounts: dict[tuple[str, str], _OwnerUsage] = {}

    def change(self, request: PendingRequest, devices: float, now: float) -> None:
        """Add devices that are held from now on; a negative number removes them."""
        key = (request.group, request.owner)
        account = self._accounts.setdefault(key, _OwnerUsage(at=now))
        self._settle(account, now)
        account.held += devices

    def uses(self, now: float) -> tuple[DecayedUsage, ...]:
        for account in self._accounts.values():
            self._settle(account, now)
        return tuple(
            DecayedUsage(group=group, owner=owner, device_seconds=account.use)
            for (group, owner), account in self._accounts.items()
        )

    def _settle(self, account: _OwnerUsage, now: float) -> None:
        decay = exp((account.at - now) * self._per_second)
        account.use = account.use * decay + account.held * (1 - decay) / self._per_second
        account.at = now


_TOLERANCE = 0.01
"""Device-seconds, or seconds: tolerance for sums of floating-point numbers."""


@dataclass(slots=True, kw_only=True)
class _BudgetAccount:
    """The budget account of one group and its subtree.

    Attributes:
        at: time up to which ``used`` is counted.
        used: device-seconds in this period; at least the budget once that is used up.
        inside: whether now is within a period; False between two terms.
        turns_at: when that changes, or a new period begins.
        refills_at: when the next full budget begins.
    """

    group: str
    budget: Budget
    terms: Sequence[Term]
    at: float = -inf
    used: float = 0.0
    held: float = 0.0
    runs: dict[str, Run] = field(default_factory=dict)
    inside: bool = False
    turns_at: float = -inf
    refills_at: float = inf

    def until(self, now: float) -> None:
        """Count the use up to now."""
        if now >= self.turns_at:
            self._turn(now)
        self.used += self.held * (now - self.at)
        self.at = now
        if self.budget.device_seconds - self.used < _TOLERANCE:
            self.used = max(self.used, self.budget.device_seconds)

    def _turn(self, now: float) -> None:
        span = span_of(self.budget.period, self.terms, now)
        refill = refill_of(self.budget.period, self.terms, now)
        self.refills_at = inf if refill is None else refill
        self.inside = span is not None
        self.used = 0.0
        if span is None:
            self.at, self.turns_at = now, self.refills_at
        else:
            since, self.turns_at = span
            self.at = max(self.at, since)

    def is_over(self) -> bool:
        """Return whether the budget of the current period is used up."""
        return self.inside and self.used >= self.budget.device_seconds > 0

    def left(self) -> BudgetBalance:
        if not self.inside:
            return BudgetBalance(group=self.group, budget=0.0, used=0.0)
        return BudgetBalance(
            group=self.group,
            budget=self.budget.device_seconds,
            used=self.used,
            running=sum(_committed(run, self.at) for run in self.runs.values()),
        )

    def next_change(self) -> float:
        """Return when the budget is used up, or else when it is renewed for runs that need it."""
        if not self.budget.device_seconds:
            return inf
        if self.inside and self.runs and not self.is_over():
            over_at = self.at + (self.budget.device_seconds - self.used) / self.held
            if over_at < self.turns_at:
                return over_at
        left = self.left()
        return self.refills_at if self.runs or left.budget <= left.used else inf


class SimulatedBudgets:
    """The budget accounts of all groups with a budget."""

    def __init__(self, groups: Iterable[Group], terms: Sequence[Term]) -> None:
        self._tree = GroupTree(groups)
        self._accounts = {
            group.name: _BudgetAccount(group=group.name, budget=group.budget, terms=terms)
            for group in self._tree.groups
            if group.budget is not None
        }

    def __bool__(self) -> bool:
        return bool(self._accounts)

    def start(self, run: Run, now: float) -> None:
        """Count the devices of a run from now on."""
        for account in self._of(run):
            account.until(now)
            account.held += run.held
            account.runs[run.job.id] = run

    def end(self, run: Run, now: float) -> None:
        for account in self._of(run):
            account.until(now)
            del account.runs[run.job.id]
            # Reset to 0 instead of a sum with a rounding error.
            account.held = account.held - run.held if account.runs else 0.0

    def left(self, now: float) -> tuple[BudgetBalance, ...]:
        for account in self._accounts.values():
            account.until(now)
        return tuple(account.left() for account in self._accounts.values())

    def stopped(self, now: float) -> list[Run]:
        """Return the runs whose budget is used up, without those that end at this moment."""
        found: dict[str, Run] = {}
        for account in self._accounts.values():
            account.until(now)
            if account.is_over():
                found |= account.runs
        return [run for run in found.values() if run.remaining(now) > _TOLERANCE]

    def next_change(self) -> float:
        """Return when a budget is used up, or renewed for runs that need it; infinity for never."""
        return min((each.next_change() for each in self._accounts.values()), default=inf)

    def never_again(self, run: Run, now: float) -> bool:
        """Return whether a run depends on a budget without a known later period."""
        return any(
            refill_of(account.budget.period, account.terms, now) is None
            for account in self._of(run)
        )

    def _of(self, run: Run) -> Iterator[_BudgetAccount]:
        for group in self._tree.ancestry(run.request.group):
            if group.name in self._accounts:
                yield self._accounts[group.name]


def _committed(run: Run, now: float) -> float:
    """Return the device-seconds that a run would still use until its time limit."""
    return run.held * max(0.0, run.since + run.request.seconds - now)
