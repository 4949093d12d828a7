"""The history of runs, by likeness, and what it says about the next run."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field

from ..interfaces.run_times import Basis
from .past_runs import PastRun, PlannedRun
from .scaling_law import ScalingLaw, ScalingRun, fit_law, sizes_of
from .survival import Observation, imputed_seconds

KEPT = 32
"""Number of newest runs that are kept of each likeness."""
RECENT = 8
_SCALED = 64
"""Number of newest complete runs of a program to which its scaling law is fitted."""
_REFITTED = 16
"""A law is fitted again when one of so many of its runs is new."""


STATISTICS = ("last", "last two", "recent median", "low", "high", "count", "age")
OF_PLAN = ("hour", "devices", "limit", "running")


def keys(plan: PlannedRun) -> Iterator[tuple[Basis, Hashable]]:
    """Yield the key of a run for each likeness for which it has one."""
    if plan.program:
        alike = (
            plan.program,
            tuple(sorted((name, str(value)) for name, value in plan.parameters.items())),
            plan.model,
            plan.devices,
        )
        yield Basis.OWN_PARAMETERS, (plan.owner, *alike)
        yield Basis.PARAMETERS, alike
        yield Basis.OWN_PROGRAM, (plan.owner, plan.program)
        yield Basis.PROGRAM, plan.program
    if plan.owner:
        yield Basis.OWNER, plan.owner
    if plan.group:
        yield Basis.GROUP, plan.group
    yield Basis.ALL, ()


@dataclass(slots=True)
class AlikeRuns:
    """The newest runs of one likeness, oldest first.

    Attributes:
        seconds: how long they ran, and which of these are lower bounds.
        logs: logarithms of the likely seconds: those of censored runs are imputed.
        ended_at: when the newest one ended.
    """

    seconds: deque[Observation] = field(default_factory=lambda: deque(maxlen=KEPT))
    logs: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT))
    ended_at: float = 0.0

    def statistics(self, now: float) -> tuple[float, ...]:
        """Return the values that ``STATISTICS`` names."""
        logs = list(self.logs)
        ordered = sorted(logs)
        recent = sorted(logs[-RECENT:])
        tenth = len(ordered) // 10
        return (
            logs[-1],
            sum(logs[-2:]) / min(2, len(logs)),
            recent[len(recent) // 2],
            ordered[tenth],
            ordered[-1 - tenth],
            float(len(logs)),
            math.log1p(max(0.0, now - self.ended_at)),
        )


_UNKNOWN = (math.nan,) * len(STATISTICS)


class RunHistory:
    """All runs that have ended so far, by likeness. Nothing of the future gets in."""

    def __init__(self) -> None:
        self._alike: dict[tuple[Basis, Hashable], AlikeRuns] = {}
        self._scaling: dict[str, deque[ScalingRun]] = {}
        self._laws: dict[str, ScalingLaw | None] = {}
        self._new: dict[str, int] = {}
        self.count = 0

    def alike(self, plan: PlannedRun) -> Iterator[tuple[Basis, AlikeRuns]]:
        """Yield the runs that are like this one, the most alike first."""
        for basis, key in keys(plan):
            found = self._alike.get((basis, key))
            if found is not None:
                yield basis, found

    def add(self, run: PastRun) -> float:
        """Add a run that has ended; return its seconds, for a censored one the likely ones."""
        likely = run.seconds
        if run.censored:
            likely = self._imputed(run)
        for each in keys(run.plan):
            alike = self._alike.setdefault(each, AlikeRuns())
            alike.seconds.append((run.seconds, run.censored))
            alike.logs.append(math.log(likely))
            alike.ended_at = run.ended_at
        program = run.plan.program
        if program and not run.censored:
            found = ScalingRun(sizes_of(run.plan), run.seconds)
            self._scaling.setdefault(program, deque(maxlen=_SCALED)).append(found)
            self._new[program] = self._new.get(program, 0) + 1
        self.count += 1
        return likely

    def law(self, program: str) -> ScalingLaw | None:
        """Return how the run time of a program depends on its parameters; None if unknown."""
        runs = self._scaling.get(program, ())
        if program not in self._laws or self._new.get(program, 0) * _REFITTED >= max(1, len(runs)):
            self._laws[program] = fit_law(runs)
            self._new[program] = 0
        return self._laws[program]

    def _imputed(self, run: PastRun) -> float:
        """Return the likely seconds of a censored run from the most alike runs that ended."""
        for _, alike in self.alike(run.plan):
            if any(seconds > run.seconds and not stopped for seconds, stopped in alike.seconds):
                return imputed_seconds(run.seconds, alike.seconds)
        return imputed_seconds(run.seconds, ())

    def features(self, plan: PlannedRun, columns: Columns, running: int) -> list[float]:
        """Return what is known of a run as numbers, NaN for what is not, as ``columns`` names it.

        Args:
            running: how many runs are going on.
        """
        alike = dict(self.alike(plan))
        values: list[float] = []
        for basis in Basis:
            found = alike.get(basis)
            values += found.statistics(plan.at) if found else _UNKNOWN
        values += (
            plan.at % 86_400 / 3600,
            float(plan.devices),
            plan.limit if math.isfinite(plan.limit) else math.nan,
            float(running),
        )
        values += (_number(plan.parameters.get(name)) for name in columns.parameters)
        values += (_number(plan.sizes.get(name)) for name in columns.sizes)
        return values


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The features of a model, beside those that all models have.

    Attributes:
        parameters: names of numeric parameters.
        sizes: names of sizes.
    """

    parameters: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        fixed = len(Basis) * len(STATISTICS) + len(OF_PLAN)
        return fixed + len(self.parameters) + len(self.sizes)


def _number(value: object) -> float:
    if isinstance(value, int | float) and math.isfinite(value):
        return float(value)
    return math.nan


def most_common(counts: Mapping[str, int], limit: int) -> tuple[str, ...]:
    """Return the names with the largest counts, by name."""
    ordered = sorted(counts, key=lambda name: (-counts[name], name))
    return tuple(sorted(ordered[:limit]))
