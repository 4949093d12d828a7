"""The ports to predictions: advice, without which everything works as before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from ..records.requests import NewRequest, RequestRecord
from ..scheduling.model.plan import Estimate


class Basis(StrEnum):
    """Which earlier runs are alike, from the most to the least specific."""

    OWN_PARAMETERS = "own_parameters"
    """Same user, program, parameters and devices."""
    PARAMETERS = "parameters"
    """Same program, parameters and devices."""
    OWN_PROGRAM = "own_program"
    """Same user and program."""
    PROGRAM = "program"
    OWNER = "owner"
    GROUP = "group"
    ALL = "all"
    """Any run; too little to predict from, but a feature of models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimeForecast:
    """The predicted run time of one run, in seconds.

    Attributes:
        seconds: the typical run time.
        low, high: 90 % of such runs take between these.
        basis: the most alike runs that were known; None: nothing was known, and ``seconds`` is the
            time limit.
        runs: how many such runs were known; of each likeness the newest 32 are kept.
        critical: of a sweep with common stages, those that determine its end: the numbers of their
            first and last cells, and how often such a stage runs there.
        saved: seconds of work that common stages save.
        trials_alone: of a sweep each of whose trials counts as a whole run, although they may share
            cells: why, as a clause.
    """

    seconds: float
    low: float
    high: float
    basis: Basis | None
    runs: int = 0
    critical: tuple[tuple[int, int, int], ...] = ()
    saved: float = 0.0
    trials_alone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemainingTime:
    """The predicted remaining run time of a running job, in seconds.

    Attributes:
        seconds: the typical remaining time.
        low, high: 90 % of such runs have between these left.
        by_cells: whether it is known from the times of cells in earlier attempts, and not only from
            whole run times.
        by_trials: whether it is known from the trials of a sweep that have ended, which ``runs``
            counts.
        by_steps: whether it is known from the progress that the job reports, alone.
        basis: the most alike earlier jobs, or attempts; None: nothing was known, and ``seconds``
            is what is left of the time limit.
        runs: how many of them were used.
    """

    seconds: float
    low: float
    high: float
    by_cells: bool = False
    by_trials: bool = False
    by_steps: bool = False
    basis: Basis | None = None
    runs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CellTimes:
    """How long the cells of an attempt that has ended took.

    Attributes:
        lease_id: the attempt.
        ended_at: when it ended, in seconds since the epoch.
        conditions: what identifies its parameters and devices.
        cells: seconds by the key of the cell, a hash of its owner and of its key in
            ``CellProgress``; in the order of the notebook.
        complete: whether all cells have run.
    """

    lease_id: str
    ended_at: float
    conditions: str
    cells: Mapping[str, float]
    complete: bool


class RunTimes(Protocol):
    """Predicts run times of jobs from those that have ended."""

    def forecast(self, request: NewRequest | RequestRecord, now: float) -> RunTimeForecast | None:
        """Return the predicted run time; None as long as the history is not loaded."""

    def remaining(self, record: RequestRecord, now: float) -> RemainingTime | None:
        """Return how long a running job has left; None for others and before the history is
        loaded."""

    def learn(self, request_id: str) -> None:
        """Learn soon from a job that has ended; returns at once."""

    def revised_seconds(self) -> Mapping[tuple[str, float], float]:
        """Return the run times of running jobs that their finished cells predict, by request and
        start of the attempt in seconds since the epoch."""

    def cell_pace(self, ended: RequestRecord, now: float) -> tuple[float, float] | None:
        """Return the seconds that cells of an attempt took, and those that the same cells took
        before.

        Only cells are counted that its owner ran before with the same parameters on devices of the
        same model; None without any.
        """


class NoRunTimes:
    """Predicts nothing."""

    def forecast(self, request: NewRequest | RequestRecord, now: float) -> RunTimeForecast | None:
        return None

    def remaining(self, record: RequestRecord, now: float) -> RemainingTime | None:
        return None

    def learn(self, request_id: str) -> None:
        pass

    def revised_seconds(self) -> Mapping[tuple[str, float], float]:
        return {}

    def cell_pace(self, ended: RequestRecord, now: float) -> tuple[float, float] | None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastOutcome:
    """A stored forecast of a run or a wait that has ended, in seconds.

    Attributes:
        at: when it ended, in seconds since the epoch.
        expected, low, high: the forecast and its interval.
        seconds: how long it took; None if it was stopped before it was complete.
    """

    at: float
    expected: float
    low: float
    high: float
    seconds: float | None


class ForecastStore(Protocol):
    """The part of the store for forecasts; see ``hub.interfaces.store``.

    Forecasts are kept for ten weeks: the insertion of new ones deletes those that are older.
    """

    def put_run_time_forecasts(self, found: Mapping[str, RunTimeForecast], *, now: float) -> None:
        """Store what is predicted of attempts, by lease. The first forecast of each is kept."""

    def put_wait_forecasts(self, found: Mapping[str, Estimate], *, now: float) -> None:
        """Store the expected starts of requests, by request. The first one of each is kept."""

    def run_time_outcomes(self, *, since: float, limit: int) -> tuple[ForecastOutcome, ...]:
        """Return the newest attempts that have ended since then and had a forecast.

        An attempt is complete if its job has succeeded with it.
        """

    def wait_outcomes(self, *, since: float, limit: int) -> tuple[ForecastOutcome, ...]:
        """Return the newest waits that have ended since then and had an expected start.

        They count from the forecast to the next grant. A request that ended without one is not
        complete.
        """

    def put_cell_times(self, found: Sequence[CellTimes]) -> None:
        """Store the cell times of attempts that have ended, of each once.

        The newest 5,000 attempts are kept.
        """

    def cell_times(self) -> tuple[CellTimes, ...]:
        """Return the stored cell times, those that ended first before the others."""
