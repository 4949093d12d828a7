"""Values of earlier jobs as parameters: checked on submission, found when their jobs have ended.

A value comes from the newest job that has ended, of the named job and those that resume it, and
has it: a resumed notebook does not run again, and so does not report again, what ran before.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..errors import InvalidInput
from ..messages import units
from ..records.dependencies import (
    Condition,
    Dependency,
    FoundResult,
    ResultKind,
    ResultParameter,
    ResultReference,
)
from ..records.json_value import Json
from ..records.requests import JobSpec, NewRequest, RequestFilter, RequestRecord
from ..runtime.context import Context
from ..scheduling.model.snapshot import Kind
from ..scheduling.model.states import TERMINAL, State
from ..schemas.sweeps import TrialsOut
from ..sweeps.space_syntax import space_from_json
from .sweeps import TrialService

_MOST_NAMES = 20
"""Names that a message lists."""


def with_results(context: Context, request: NewRequest, given: Mapping[str, str]) -> NewRequest:
    """Return the request with parameters that get values of the jobs that it waits for.

    Args:
        given: references by parameter; the notebook has these parameters.

    Raises:
        InvalidInput: a reference is malformed, names a job that the request does not wait for, or
            a value that this job will not have, or has not although it has ended.
    """
    job = request.job
    if not given or job is None:
        return request
    results = tuple(_parameter(job, name, text) for name, text in given.items())
    finder = ResultFinder(context)
    conditions = {each.job: each.condition for each in map(Dependency.parse, job.after)}
    for each in results:
        named = context.store.request(each.job)
        _check_kind(each, named)
        met = TERMINAL if conditions[each.job] is Condition.ANY else {State.SUCCEEDED}
        if named.state in met:
            finder.find(each)
    return replace(request, job=replace(job, results=results))


def unresolved(job: JobSpec) -> dict[str, str]:
    """Return the references of a job that has not been released, as its body has them."""
    return {each.name: str(each.reference) for each in job.results if not each.source}


def _parameter(job: JobSpec, name: str, text: str) -> ResultParameter:
    reference = ResultReference.parse(text)
    swept = space_from_json(job.sweep.space).trials() if job.sweep is not None else ()
    if name in job.parameters or any(name in trial.values for trial in swept):
        raise InvalidInput(
            f"The parameter {name[:80]} has both a value and a result of a job.",
            accepted="Give each parameter once.",
            field="results",
        )
    after = [Dependency.parse(each).job for each in job.after]
    if reference.job not in after:
        waits = f"It waits for: {', '.join(after)}." if after else "It waits for no job."
        raise InvalidInput(
            f"The parameter {name[:80]} is to have a value of {reference.job[:80]}, which the job "
            f"does not wait for. {waits}",
            accepted=f"Add --after {reference.job[:80]}.",
            field="results",
        )
    return ResultParameter(name=name, job=reference.job, value=reference.value)


def _check_kind(wanted: ResultParameter, named: RequestRecord) -> None:
    """Refuse a value that no end of the job can give."""
    reference = wanted.reference
    sweep = None if named.job is None else named.job.sweep
    if sweep is None:
        if reference.kind in (ResultKind.BEST, ResultKind.TRIAL):
            raise _refused(
                wanted,
                f"{named.id} is no sweep.",
                "JOB.report.NAME, the last value that it has reported as NAME, or JOB.id.",
            )
        return
    if not sweep.objective and reference.kind is not ResultKind.ID:
        raise _refused(
            wanted,
            f"the sweep {named.id} has no objective, and so no best trial.",
            f"{named.id}.id, or a sweep with --objective NAME.",
        )
    names = dict.fromkeys(
        name for trial in space_from_json(sweep.space).trials() for name in trial.values
    )
    if reference.kind is ResultKind.BEST and names and reference.name not in names:
        raise _refused(
            wanted,
            f"the sweep {named.id} has no parameter {reference.name[:80]}.",
            f"It has: {', '.join(names)}.",
        )


def _refused(wanted: ResultParameter, why: str, accepted: str = "") -> InvalidInput:
    return InvalidInput(
        f"The parameter {wanted.name[:80]} is to have {wanted.value[:120]} of {wanted.job}, but "
        f"{why}",
        accepted=accepted,
        field="results",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _JobValues:
    """What one ended job has given.

    Attributes:
        reported: the last value of each name; of a sweep, those of its best trial.
        best: number of the best trial; 0 for none.
        parameters: of the best trial.
        missing: what the job, or its best trial, has reported, as a sentence.
    """

    reported: Mapping[str, float]
    missing: str
    best: int = 0
    parameters: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResultFinder:
    """Finds values of ended jobs; what it has read of a job, it does not read again."""

    context: Context
    _values: dict[str, _JobValues] = field(default_factory=dict)
    _chains: dict[str, Sequence[RequestRecord]] = field(default_factory=dict)

    def all(self, job: JobSpec) -> Mapping[str, FoundResult]:
        """Return the values of the parameters that others give, except those that it has already.

        Raises:
            InvalidInput: one is missing, or is not a finite number; the message says what its job
                has reported.
        """
        return {each.name: self.find(each) for each in job.results if not each.source}

    def find(self, wanted: ResultParameter) -> FoundResult:
        """Return one value; raises as ``all``."""
        ended = self._ended(wanted.job)
        if not ended:
            raise _refused(wanted, "this job has not ended.")
        reference = wanted.reference
        if reference.kind is ResultKind.ID:
            return FoundResult(value=ended[0].id, source=ended[0].id)
        for record in ended:
            for value in _value(self._of(record), reference):
                if isinstance(value, float) and not math.isfinite(value):
                    raise _refused(wanted, f"the last value of {record.id} is {value}.")
                return FoundResult(value=value, source=record.id)
        raise _refused(wanted, self._of(ended[0]).missing)

    def _ended(self, name: str) -> Sequence[RequestRecord]:
        """Return the job and those that resume it, if they have ended, newest first."""
        if name not in self._chains:
            chain = [self.context.store.request(name)]
            while newer := self._resumptions(chain[0]):
                chain = [*newer, *chain]
            self._chains[name] = [record for record in chain if record.state in TERMINAL]
        return self._chains[name]

    def _resumptions(self, record: RequestRecord) -> Sequence[RequestRecord]:
        return self.context.store.requests(
            RequestFilter(owner=record.owner, kind=Kind.JOB, resumes=frozenset({record.id}))
        )

    def _of(self, record: RequestRecord) -> _JobValues:
        if record.id not in self._values:
            self._values[record.id] = self._read(record)
        return self._values[record.id]

    def _read(self, record: RequestRecord) -> _JobValues:
        service = TrialService(self.context)
        if not self.context.files.keeps(record.id):
            return _JobValues(reported={}, missing=f"the files of {record.id} have been deleted.")
        if record.job is None or record.job.sweep is None:
            last = {name: series.last for name, series in service.series(record).items()}
            return _JobValues(reported=last, missing=f"{record.id} has reported {_listed(last)}.")
        found = service.trials(None, record.id)
        if found.best is None:
            return _JobValues(reported={}, missing=_no_best(record.id, found))
        best = next(trial for trial in found.trials if trial.number == found.best)
        last = dict(service.reported(record, best.number))
        return _JobValues(
            reported=last,
            best=best.number,
            parameters=best.values,
            missing=f"the best trial of {record.id}, trial {best.number}, has reported "
            f"{_listed(last)}, and has the parameters {', '.join(best.values)}.",
        )


def _value(found: _JobValues, wanted: ResultReference) -> Sequence[Json]:
    """Return the value, or nothing if there is none; it may be null."""
    if wanted.kind is ResultKind.TRIAL:
        return [found.best] if found.best else []
    values = found.reported if wanted.kind is ResultKind.REPORT else found.parameters
    return [values[wanted.name]] if wanted.name in values else []


def _no_best(name: str, found: TrialsOut) -> str:
    ended = sum(trial.state == "succeeded" for trial in found.trials)
    trials = units.count(ended, "trial")
    return f"{name} has no best trial: {trials} succeeded. {found.note}".rstrip()


def _listed(names: Iterable[str]) -> str:
    every = sorted(names)
    more = f" and {len(every) - _MOST_NAMES} more" if len(every) > _MOST_NAMES else ""
    return ", ".join(every[:_MOST_NAMES]) + more if every else "nothing"
