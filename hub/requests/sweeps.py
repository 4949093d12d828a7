"""Sweeps: check the one that is submitted, and show the trials of one that runs or has ended."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, TypeAlias, cast

from ..attempts.compilations import read_compilations
from ..attempts.compile_cache_report import read_compile_cache_report
from ..attempts.notebook_format import is_marimo, read_notebook
from ..attempts.reports import ReportedSeries, joined, last_reports, read_reports, thinned
from ..attempts.spec import REPORTS
from ..attempts.trials import (
    EARLIER_TRIALS,
    TRIALS,
    TrialRecord,
    TrialState,
    has_results,
    notebook_name,
    read_stopped,
    read_trials,
    reports_name,
    stop_trial,
)
from ..errors import Conflict, InvalidInput, NotFound
from ..forecasts.sweep_expectation import sweep_expectation
from ..messages import units
from ..records.identity import Identity
from ..records.requests import NewRequest, RequestRecord, SweepOrder
from ..runtime.context import Context
from ..scheduling.model.states import TERMINAL, State
from ..schemas import JobIn
from ..schemas.sweeps import (
    AcceleratedFunctionOut,
    ReportOut,
    ReportsOut,
    SharingOut,
    SweepIn,
    TrialOut,
    TrialsOut,
)
from ..sweeps.notebook_cells import read_sweep_notebook
from ..sweeps.plots.trial_plots import logarithmic_parameters
from ..sweeps.space import (
    MOST_TOGETHER,
    Pruner,
    SearchSpace,
    Space,
    check_together,
    trained_together,
)
from ..sweeps.space_syntax import space_from_json
from ..sweeps.stage_description import no_sharing, one_run
from ..sweeps.trials import Scalar, Trial
from .access import RequestAccess
from .outputs import kept_folders, resumed_job, submitted
from .sweep_analysis.process import AnalysingProcess
from .trial_cache import TrialCache

_WAITING, _NOT_RUN = "waiting", "not_run"
_LIVE: Final = (State.STARTING, State.RUNNING, State.STOPPING)
MOST_POINTS: Final = 500
"""Points of a curve, unless other points are asked for."""
_MOST_ATTEMPTS: Final = 10
"""Attempts of which reported values are read, the newest ones."""


def with_sweep(request: NewRequest, body: JobIn, notebook: bytes | None) -> NewRequest:
    """Return the request with the sweep of its body, if there is one.

    Args:
        notebook: the notebook of the job.

    Raises:
        InvalidInput: the sweep does not fit the notebook, or the devices of the job.
    """
    if body.sweep is None or request.job is None:
        return request
    if notebook is None:
        raise InvalidInput(
            "A sweep runs a notebook, and this job is a command.",
            accepted="A notebook with a cell that has the tag 'parameters'.",
            field="sweep",
        )
    job = request.job
    _check_parallel(request.devices, body.sweep.parallel)
    if is_marimo(read_notebook(job.notebook_name, notebook).node):
        raise InvalidInput(
            f"{job.notebook_name} is a marimo notebook: trials cannot share its cells.",
            accepted="A Jupyter notebook.",
            field="sweep",
        )
    found = read_sweep_notebook(job.notebook_name, notebook.decode())
    space = space_from_json(body.sweep.space).check(found)
    trials = space.trials()
    names = {name for trial in trials for name in trial.values}
    if twice := sorted(names & job.parameters.keys()):
        raise InvalidInput(
            f"{', '.join(twice)} is a parameter of the sweep and of the job.",
            accepted="Give each parameter once.",
            field="parameters",
        )
    if isinstance(space, SearchSpace) and not body.sweep.objective:
        raise InvalidInput(
            "A search needs an objective.",
            accepted="The name of a value that the notebook reports, such as loss.",
            field="objective",
        )
    if body.sweep.together:
        check_together(space)
        _check_one_run(body.sweep.parallel)
    if body.sweep.parallel > len(trials):
        raise InvalidInput(
            f"{body.sweep.parallel} trials cannot run at a time: the sweep has "
            f"{units.count(len(trials), 'trial')}.",
            accepted=f"From 1 to {len(trials)} at a time.",
            field="parallel",
        )
    fields = body.sweep.model_dump(exclude={"space"})
    order = SweepOrder(space=space.as_json(), trials=len(trials), **fields)  # type: ignore[arg-type]
    return replace(request, job=replace(job, sweep=order))


def sweep_fields(order: SweepOrder) -> dict[str, object]:
    """Return the body that submits a sweep again."""
    return {name: value for name, value in asdict(order).items() if name in SweepIn.model_fields}


def together_text(request: NewRequest) -> str:
    """Say how many trials of a sweep are trained as one; empty if the job is no sweep."""
    order = None if request.job is None else request.job.sweep
    if order is None:
        return ""
    return trained_together(space_from_json(order.space), together=order.together)


def _check_parallel(devices: int, parallel: int) -> None:
    if devices % parallel:
        raise InvalidInput(
            f"{units.count(devices, 'device')} cannot be divided among {parallel} trials.",
            accepted=f"0 devices, or {parallel}, {2 * parallel} and so on.",
            field="devices",
        )


def _check_one_run(parallel: int) -> None:
    if parallel > 1:
        raise InvalidInput(
            f"Trials that are trained as one are one run of the notebook, not {parallel} at a "
            "time.",
            accepted="1 at a time; the run has all devices of the job.",
            field="parallel",
        )


def earlier_trials(context: Context, request: RequestRecord, *, before: int) -> Path | None:
    """Return the newest folder with results of an earlier attempt, or of a resumed job.

    The trials of a resumed job count only if the notebook is the same.
    """
    files, job = context.files, request
    epoch: int | None = before
    while True:
        for folder in kept_folders(files, job, before=epoch):
            if _has_results(folder):
                return folder
        resumed = resumed_job(context.store, job)
        if resumed is None or resumed.job is None or resumed.job.sweep is None:
            return None
        if not _are_equal(files.input_path(resumed.id), files.input_path(job.id)):
            return None
        job, epoch = resumed, None


def _has_results(folder: Path) -> bool:
    names = (TRIALS, EARLIER_TRIALS)
    ended = any(has_results(read_trials(folder, name)) for name in names)
    return ended or bool(read_stopped(folder))


def _are_equal(before: Path, now: Path) -> bool:
    try:
        return before.read_bytes() == now.read_bytes()
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class TrialService:
    """Shows the trials of sweeps, and the values that jobs have reported."""

    context: Context
    cache: TrialCache = field(default_factory=TrialCache)
    process: AnalysingProcess = field(default_factory=AnalysingProcess)

    def trials(self, who: Identity | None, request_id: str) -> TrialsOut:
        """Return all trials of a sweep with their newest state; None as the caller is the service.

        Raises:
            NotFound: it is no sweep, or the caller cannot see it.
        """
        record, order = self._sweep(who, request_id)
        found, stopped = self._records(record)
        not_run = _NOT_RUN if record.state in TERMINAL else _WAITING
        live = record.state in _LIVE
        space = space_from_json(order.space)
        if isinstance(space, SearchSpace):
            planned = _chosen(space, found, stopped)
        else:
            planned = self.cache.planned(record.id, space.trials)
        trials = [
            _trial_out(
                trial.number,
                trial.values,
                found.get(trial.number),
                live=live,
                otherwise=TrialState.STOPPED if trial.number in stopped else not_run,
                together=order.together,
            )
            for trial in planned
        ]
        names = dict.fromkeys(name for one in found.values() for name in one.reported)
        ranked = [order.objective] if order.objective in names else []
        best = best_trial(trials, order)
        return TrialsOut(
            trials=trials,
            planned=order.trials,
            parameters=_parameters(space, planned),
            logarithmic=logarithmic_parameters(space),
            names=[*ranked, *(name for name in names if name != order.objective)],
            objective=order.objective,
            maximize=order.maximize,
            best=best,
            note=_note(trials, order, space, found),
            together=order.together,
        )

    def sharing(self, who: Identity | None, request_id: str) -> SharingOut:
        """Return what the trials of a sweep share, by the analysis of its notebook.

        Raises:
            NotFound: it is no sweep, the caller cannot see it, or its files were deleted.
            TooLarge: the analysis takes too long.
            Unavailable: too many notebooks are being analysed.
        """
        record, order = self._sweep(who, request_id)
        assert record.job is not None
        name = record.job.notebook_name
        text = submitted(self.context.files, record).decode()
        if order.together:
            return one_run(read_sweep_notebook(name, text), space_from_json(order.space))
        if not order.share:
            return no_sharing(read_sweep_notebook(name, text), order.trials)
        make = partial(self.process.sharing, name, text, order.space)
        found = self.cache.sharing(record.id, make)
        expected = list(sweep_expectation(self.context, record))
        return found.model_copy(update={"expected": expected}) if expected else found

    def _sweep(self, who: Identity | None, request_id: str) -> tuple[RequestRecord, SweepOrder]:
        """Return a sweep that the caller may see. Raises NotFound."""
        record = RequestAccess(self.context.store).visible(who, request_id)
        order = None if record.job is None else record.job.sweep
        if order is None:
            raise NotFound(
                f"{record.id} is no sweep.", accepted="A job that `carrel sweep` has submitted."
            )
        return record, order

    def _records(self, record: RequestRecord) -> tuple[Mapping[int, TrialRecord], frozenset[int]]:
        """Return what has become of the trials, and the numbers of the stopped ones."""
        for folder in kept_folders(self.context.files, record):
            for name in (TRIALS, EARLIER_TRIALS):
                if found := self.cache.records(folder, name):
                    live = _so_far(folder, found) if record.state in _LIVE else {}
                    return {**found, **live}, read_stopped(folder)
        return {}, frozenset()

    def stop(self, who: Identity, request_id: str, number: int) -> TrialsOut:
        """Stop a trial that runs or waits; one that has ended stays as it is.

        Raises:
            NotFound, Forbidden: it is no sweep of the caller's own, or has no such trial.
            Conflict: the sweep does not run.
        """
        record = RequestAccess(self.context.store).owned(who, request_id)
        order = None if record.job is None else record.job.sweep
        if order is None or not 1 <= number <= order.trials:
            raise NotFound(f"{record.id} has no trial {number}.")
        if record.state is not State.RUNNING or record.lease is None:
            raise Conflict(f"{record.id} is {record.state}: only trials of a running sweep stop.")
        folder = self.context.files.attempt_folder(record.id, record.lease.epoch)
        stop_trial(folder, number)
        return self.trials(who, request_id)

    def reports(
        self, who: Identity, request_id: str, trial: int = 0, *, points: int = MOST_POINTS
    ) -> ReportsOut:
        """Return what a job has reported, or one trial of a sweep, over its attempts.

        ``points``: the most for each name, at least 4.

        Raises:
            NotFound: the caller cannot see the job.
        """
        record = RequestAccess(self.context.store).visible(who, request_id)
        found = self.series(record, trial)
        return ReportsOut(
            reports=[_report_out(*each, points) for each in found.items()],
            compilations=[] if trial else self.compilations(record),
            compile_cache=[] if trial else self.compile_cache(record),
        )

    def compile_cache(self, record: RequestRecord) -> list[str]:
        """Return what the newest attempt says of its compile cache, as sentences."""
        folders = islice(kept_folders(self.context.files, record), 1)
        return [
            sentence
            for folder in folders
            for sentence in read_compile_cache_report(folder).sentences
        ]

    def compilations(self, record: RequestRecord) -> list[AcceleratedFunctionOut]:
        """Return the functions that the newest attempt has accelerated."""
        folders = islice(kept_folders(self.context.files, record), 1)
        return [
            AcceleratedFunctionOut.model_validate(asdict(each))
            for folder in folders
            for each in read_compilations(folder)
        ]

    def series(self, record: RequestRecord, trial: int = 0) -> Mapping[str, ReportedSeries]:
        """Return all values that a job has reported by name, or one trial of a sweep."""
        name = reports_name(trial) if trial else REPORTS
        folders = islice(kept_folders(self.context.files, record), _MOST_ATTEMPTS)
        every = (read_reports(folder, name) for folder in folders)
        # A trial starts anew in each attempt.
        return next(filter(None, every), {}) if trial else joined(every)

    def reported(self, record: RequestRecord, trial: int) -> Mapping[str, float]:
        """Return the last value of each name that a trial of a sweep has reported."""
        found = self._records(record)[0].get(trial)
        return {} if found is None else found.reported


def _report_out(name: str, series: ReportedSeries, points: int) -> ReportOut:
    finite = [value for value in series.values if math.isfinite(value)]
    shown = thinned(series, points)
    return ReportOut(
        name=name,
        steps=list(shown.steps),
        values=[_finite(value) for value in shown.values],
        last=_finite(series.last),
        least=min(finite, default=None),
        most=max(finite, default=None),
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _so_far(folder: Path, found: Mapping[int, TrialRecord]) -> dict[int, TrialRecord]:
    """Return the trials that run, with what they have reported so far."""
    running = (one for one in found.values() if one.state is TrialState.RUNNING)
    return {
        one.number: replace(one, reported=last_reports(folder, reports_name(one.number)))
        for one in islice(running, MOST_TOGETHER)
    }


def best_trial(trials: Sequence[TrialOut], order: SweepOrder) -> int | None:
    """Return the number of the trial with the best objective; the first one of several."""
    sign = -1.0 if order.maximize else 1.0
    values = {
        trial.number: sign * value
        for trial in trials
        if trial.state == TrialState.SUCCEEDED
        and (value := trial.reported.get(order.objective)) is not None
    }
    return min(values, key=values.__getitem__, default=None)


def _chosen(
    space: SearchSpace, found: Mapping[int, TrialRecord], stopped: frozenset[int]
) -> tuple[Trial, ...]:
    """Return the trials of a search whose values have been chosen, and those that never will be."""
    numbers = sorted(n for n in {*found, *stopped} if 1 <= n <= space.count)
    values = {n: found[n].values for n in numbers if n in found and space.admits(found[n].values)}
    return tuple(Trial(number=n, values=cast("_Values", values.get(n, {}))) for n in numbers)


_Values: TypeAlias = "Mapping[str, Scalar]"


def _parameters(space: Space, planned: Sequence[Trial]) -> list[str]:
    if isinstance(space, SearchSpace):
        return list(space.parameters)
    return list(dict.fromkeys(name for one in planned for name in one.values))


def _note(
    trials: Sequence[TrialOut], order: SweepOrder, space: Space, found: Mapping[int, TrialRecord]
) -> str:
    """Return what is wrong with the objective, so that trials cannot be compared by it."""
    name = order.objective
    succeeded = [trial for trial in trials if trial.state == TrialState.SUCCEEDED]
    without = [trial for trial in succeeded if trial.reported.get(name) is None]
    if not name or not succeeded:
        return ""
    if len(without) == len(succeeded):
        if any(name in trial.reported for trial in succeeded):
            return f"No trial has reported a number as {name}."
        return f"No trial has reported {name}: call carrel.report({name!r}, value) in the notebook."
    if not isinstance(space, SearchSpace):
        return ""
    if without:
        trials_text = units.count(len(without), "trial")
        return f"The search leaves {trials_text} out, without a number as {name}."
    if space.pruner is not Pruner.NONE and all(found[one.number].steps <= 1 for one in succeeded):
        return (
            f"Trials cannot be stopped early, since they have reported {name} only once: call "
            f"carrel.report({name!r}, value, step) after each step."
        )
    return ""


def _has_run(record: TrialRecord) -> bool:
    return record.state is not TrialState.STOPPED or record.seconds > 0


def _trial_out(
    number: int,
    values: Mapping[str, object],
    record: TrialRecord | None,
    *,
    live: bool,
    otherwise: str,
    together: bool,
) -> TrialOut:
    """Return a trial.

    Args:
        live: whether an attempt of the sweep runs.
        otherwise: the state of a trial that neither runs nor has ended.
        together: whether its notebook is written only when it ends.
    """
    has_begun = record is not None and record.state is not TrialState.WAITING
    if record is None or not has_begun or (record.state is TrialState.RUNNING and not live):
        return TrialOut(number=number, values=dict(values), state=otherwise)
    unwritten = together and record.state is TrialState.RUNNING
    return TrialOut(
        number=number,
        values=dict(values),
        state=record.state,
        at=record.at,
        seconds=round(record.seconds, 3),
        message=record.message,
        reported={
            name: value if math.isfinite(value) else None for name, value in record.reported.items()
        },
        notebook=notebook_name(number) if _has_run(record) and not unwritten else "",
    )
