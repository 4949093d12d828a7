"""Predict the remaining time of a run: from its cells, or from whole run times."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, median

from ..interfaces.run_times import CellTimes, RemainingTime, RunTimeForecast
from .conformal import AdaptiveConformal
from .run_history import KEPT

_MOST_KEYS = 100_000
_SCALED_FROM = 3
"""Number of attempts from which it can be told whether cells scale together."""
_COMPARED = 2
"""Earlier attempts from which the time of a cell is known."""
_LEAST_SECONDS = 1.0
"""Remaining times are compared in logarithms, and below this as equal."""
_CHECKPOINTS = (0.0, 0.25, 0.5, 0.75)
"""Shares of a run after which the intervals are compared with what followed."""
_NORMAL = NormalDist()
_LOW, _HIGH = 0.05, 0.95
_LEAST_SPREAD = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPosition:
    """Where a run is.

    Attributes:
        done: seconds by key of the cells that have run.
        ahead: keys of the running cell and of those after it, or of those after the last one that
            has run.
        running: seconds for which the first cell of ``ahead`` has run.
        conditions: as in ``CellTimes``.
    """

    done: Mapping[str, float]
    ahead: Sequence[str]
    running: float = 0.0
    conditions: str = ""


@dataclass(frozen=True, slots=True)
class _Rest:
    """What an attempt took for the cells that are still ahead; ``done`` for those before them."""

    done: float
    current: float
    later: float

    def scaled(self, factor: float) -> _Rest:
        return _Rest(self.done, self.current * factor, self.later * factor)


@dataclass(frozen=True, slots=True)
class _Estimate:
    """A typical remaining time with an interval that is not widened yet."""

    low: float
    typical: float
    high: float
    runs: int


class CellHistory:
    """How long cells took in the newest attempts, and what that says about a run.

    Comparable are the attempts that have run every cell that is still ahead, whatever the notebook
    had before them: so an edited notebook keeps its history from the last edited cell on. Those
    with the same parameters and devices are preferred. The intervals are widened by what the
    attempts that ended before would have needed.
    """

    def __init__(self) -> None:
        self._by_key: OrderedDict[str, deque[CellTimes]] = OrderedDict()
        self._conformal = AdaptiveConformal()

    def observe(self, times: CellTimes) -> None:
        """Learn from an attempt that has ended."""
        if times.complete:
            self._calibrate(times)
        self.add(times)

    def add(self, times: CellTimes) -> None:
        """Learn from an attempt, without a comparison of its intervals."""
        for key in times.cells:
            self._by_key.setdefault(key, deque(maxlen=KEPT)).append(times)
            self._by_key.move_to_end(key)
        while len(self._by_key) > _MOST_KEYS:
            self._by_key.popitem(last=False)

    def remaining(self, position: CellPosition) -> RemainingTime | None:
        """Return what a run has left; None without a comparable attempt."""
        found = self._estimate(position)
        if found is None:
            return None
        widening = max(self._conformal.widening, math.log(found.low / found.high) / 2)
        return RemainingTime(
            seconds=found.typical,
            low=min(found.typical, found.low * math.exp(-widening)),
            high=max(found.typical, found.high * math.exp(widening)),
            by_cells=True,
            runs=found.runs,
        )

    def expected(self, done: Mapping[str, float], conditions: str) -> tuple[float, float] | None:
        """Return the seconds that the cells of a run took, and those that they took before.

        Counted are the cells that at least ``_COMPARED`` attempts with the same parameters and
        devices have run; None without any.
        """
        took = before = 0.0
        for key, seconds in done.items():
            known = [
                each.cells[key]
                for each in self._by_key.get(key, ())
                if each.conditions == conditions
            ]
            if len(known) >= _COMPARED:
                took += seconds
                before += median(known)
        return (took, before) if took > 0 and before > 0 else None

    def typical(self, keys: Sequence[str]) -> Sequence[float]:
        """Return the median seconds of these cells in all attempts; empty if one is unknown."""
        known = [[run.cells[key] for run in self._by_key.get(key, ())] for key in keys]
        return [median(each) for each in known] if all(known) else []

    def knows_conditions(self, position: CellPosition) -> bool:
        """Return whether a comparable attempt had the same parameters and devices."""
        return any(
            each.conditions == position.conditions for each in self._comparable(position.ahead)
        )

    def _comparable(self, ahead: Sequence[str]) -> list[CellTimes]:
        if not ahead:
            return []
        found = self._by_key.get(ahead[0], ())
        return [each for each in found if all(key in each.cells for key in ahead)]

    def _estimate(self, position: CellPosition) -> _Estimate | None:
        runs = self._comparable(position.ahead)
        runs = [each for each in runs if each.conditions == position.conditions] or runs
        rests = [_rest(each.cells, position) for each in runs]
        if not rests:
            return None
        if _scale_together(rests):
            done = math.fsum(position.done.values())
            rests = [each.scaled(done / each.done) for each in rests]
        left = sorted(_after(rests, position.running))
        tenth = len(left) // 20
        typical = median(left)
        return _Estimate(
            max(_LEAST_SECONDS, left[tenth]),
            typical,
            max(_LEAST_SECONDS, left[-1 - tenth]),
            len(left),
        )

    def _calibrate(self, times: CellTimes) -> None:
        """Compare the intervals that it would have had with what followed."""
        keys, total = list(times.cells), math.fsum(times.cells.values())
        passed, checked = 0.0, 0
        for number, key in enumerate(keys):
            if checked < len(_CHECKPOINTS) and passed >= total * _CHECKPOINTS[checked]:
                self._compare(times, keys[:number], keys[number:])
                checked = sum(passed >= total * share for share in _CHECKPOINTS)
            passed += times.cells[key]

    def _compare(self, times: CellTimes, done: Sequence[str], ahead: Sequence[str]) -> None:
        left = math.fsum(times.cells[key] for key in ahead)
        found = self._estimate(
            CellPosition(
                done={key: times.cells[key] for key in done},
                ahead=ahead,
                conditions=times.conditions,
            )
        )
        if found is None or left < _LEAST_SECONDS:
            return
        score = max(math.log(found.low / left), math.log(left / found.high))
        self._conformal.observe(score, missed=score > self._conformal.widening)


def _rest(cells: Mapping[str, float], position: CellPosition) -> _Rest:
    """Return what an attempt took; ``done`` is 0 unless it has run all cells that have run now."""
    known = all(key in cells for key in position.done)
    done = math.fsum(cells[key] for key in position.done) if known else 0.0
    current, *later = (cells[key] for key in position.ahead)
    return _Rest(done, current, math.fsum(later))


def _scale_together(rests: Sequence[_Rest]) -> bool:
    """Return whether the rest of these attempts is better known as a multiple of what had run.

    So it is where devices or data differ for all cells alike; not where one cell reads a file and
    another one trains for a number of steps.
    """
    if len(rests) < _SCALED_FROM or any(each.done < _LEAST_SECONDS for each in rests):
        return False
    left = [math.log(max(_LEAST_SECONDS, each.current + each.later)) for each in rests]
    ratios = [value - math.log(each.done) for value, each in zip(left, rests, strict=True)]
    return _spread(ratios) < _spread(left)


def _spread(values: Sequence[float]) -> float:
    middle = median(values)
    return math.fsum(abs(value - middle) for value in values)


def _after(rests: Sequence[_Rest], running: float) -> list[float]:
    """Return the remaining seconds of each, once the present cell has run for so long.

    Attempts whose cell had ended by then say nothing on the present one. If that are all, the cell
    is expected to take twice as long as until now, as the scheduler expects of runs.
    """
    longer = [each for each in rests if each.current > running]
    if longer:
        return [each.current - running + each.later for each in longer]
    return [running + each.later for each in rests]


def remaining_of_run(forecast: RunTimeForecast, elapsed: float) -> RemainingTime:
    """Return what a run has left by its predicted run time, given that it has run for so long.

    The run time is log-normal, with the interval of the forecast. A run that outlives what is
    possible by that is expected to run twice as long as until now.
    """
    elapsed = max(0.0, elapsed)
    middle = math.log(max(forecast.seconds, 1e-3))
    width = math.log(max(forecast.high, 1e-3)) - math.log(max(forecast.low, 1e-3))
    spread = max(_LEAST_SPREAD, width / (_NORMAL.inv_cdf(_HIGH) - _NORMAL.inv_cdf(_LOW)))
    passed = _NORMAL.cdf((math.log(elapsed) - middle) / spread) if elapsed > 0 else 0.0

    def left(share: float) -> float:
        at = _NORMAL.inv_cdf(passed + share * (1.0 - passed))
        return max(0.0, math.exp(middle + spread * at) - elapsed)

    if passed > 1.0 - 1e-6:
        low, typical, high = 0.0, elapsed, 3.0 * elapsed
    else:
        low, typical, high = left(_LOW), left(0.5), left(_HIGH)
    return RemainingTime(
        seconds=typical, low=low, high=high, basis=forecast.basis, runs=forecast.runs
    )
