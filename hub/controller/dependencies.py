"""Release jobs when the jobs that they wait for have ended as wanted, with values of these.

A job of a program that its owner has to approve is not released before that.

A job whose dependency has failed stays queued: the failed job can be resumed, and the rest goes on
when that has succeeded. A job whose parameter is to have a value that none of them has given ends.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ..errors import InvalidInput
from ..messages.programs import approval_sentence
from ..messages.requests import dependency_sentence
from ..records.dependencies import Condition, Dependency
from ..records.requests import Cause, CauseCode, RequestFilter, RequestRecord
from ..requests.job_results import ResultFinder
from ..runtime.context import Context
from ..scheduling.model.snapshot import Kind
from ..scheduling.model.states import TERMINAL, State
from ..transitions import lifecycle, owner_changes

log = logging.getLogger(__name__)

RESUMPTIONS_EVERY: Final = 5.0
"""How often jobs are looked for that resume a failed one."""
_ALL: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """The jobs that are waited for.

    Attributes:
        jobs: by id.
        newest: by id, the newest job that resumes it, or the job itself.
    """

    jobs: Mapping[str, RequestRecord] = field(default_factory=dict)
    newest: Mapping[str, RequestRecord] = field(default_factory=dict)


class DependencyController:
    """Called by the loop in every cycle; its state may be lost."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._resumed: Mapping[str, str] = {}
        """By id of a job that did not succeed: the newest job that resumes it."""
        self._looked_at = -math.inf

    def reconcile(self, now: float) -> bool:
        """Release what is due, and say what others wait for; return whether anything changed."""
        store = self._context.store
        held = store.requests(RequestFilter(held=True, limit=_ALL))
        known = self._known(held, now) if held else _Known()
        changed, sentences, finder = False, dict[str, str](), ResultFinder(self._context)
        of_programs = any(request.program for request in held)
        jobs = store.program_jobs() if of_programs else ()
        unapproved = {job.request_id for job in jobs if job.waits}
        for request in held:
            if request.id in unapproved:
                sentences[request.id] = approval_sentence(request.program, request.id)
                continue
            left = [each for each in _dependencies(request) if not _is_met(each, known)]
            if left:
                sentences[request.id] = " ".join(_sentence(each, known) for each in left)
                continue
            self._release(request, finder, now)
            changed = True
        return self._context.plan_cache.publish_dependencies(sentences) or changed

    def _release(self, request: RequestRecord, finder: ResultFinder, now: float) -> None:
        """Release a job with the values that it gets; without one of them it fails."""
        store = self._context.store
        try:
            results = finder.all(request.job) if request.job is not None else {}
        except InvalidInput as error:
            log.info("%s ends: %s", request.id, error.message)
            cause = Cause(code=CauseCode.MISSING_RESULT, message=error.message)
            store.apply(request.id, lifecycle.stop, State.FAILED, cause, now=now)
            return
        log.info("released %s: the jobs that it waits for have ended", request.id)
        store.apply(request.id, owner_changes.release, results, now=now)

    def _known(self, held: Sequence[RequestRecord], now: float) -> _Known:
        names = {each.job for request in held for each in _dependencies(request)}
        jobs = {record.id: record for record in self._requests(ids=frozenset(names))}
        failed = [record for record in jobs.values() if record.state in _RESUMABLE]
        if failed and now - self._looked_at >= RESUMPTIONS_EVERY:
            self._looked_at = now
            self._resumed = self._resumptions(failed)
        last = {name: self._last(name) for name in jobs}
        later = frozenset(last.values()) - jobs.keys()
        found = {record.id: record for record in self._requests(ids=later)} if later else {}
        found |= jobs
        newest = {name: found.get(last[name], record) for name, record in jobs.items()}
        return _Known(jobs=jobs, newest=newest)

    def _last(self, name: str) -> str:
        while name in self._resumed:
            name = self._resumed[name]
        return name

    def _resumptions(self, failed: Iterable[RequestRecord]) -> dict[str, str]:
        """Return the newest resumption of each job, and of each resumption. Only owners resume."""
        found: dict[str, str] = {}
        ids = frozenset(record.id for record in failed)
        owners = {record.owner for record in failed}
        while ids:
            newer = [
                record
                for owner in sorted(owners)
                for record in self._requests(owner=owner, kind=Kind.JOB, resumes=ids)
            ]
            # The newest first: the last entry of an id is its newest.
            found |= {job.resumes: record.id for record in reversed(newer) if (job := record.job)}
            ids = frozenset(record.id for record in newer)
        return found

    def _requests(self, **which: Any) -> Sequence[RequestRecord]:
        return self._context.store.requests(RequestFilter(**which, limit=_ALL))


_RESUMABLE = TERMINAL - {State.SUCCEEDED}


def _dependencies(request: RequestRecord) -> Iterator[Dependency]:
    return map(Dependency.parse, request.job.after if request.job else ())


def _is_met(dependency: Dependency, known: _Known) -> bool:
    name = dependency.job
    if dependency.condition is Condition.ANY:
        return name in known.jobs and known.jobs[name].state in TERMINAL
    return name in known.newest and known.newest[name].state is State.SUCCEEDED


def _sentence(dependency: Dependency, known: _Known) -> str:
    record = known.newest.get(dependency.job)
    if record is None:
        return f"It waits for {dependency.job}, which does not exist any more: cancel this job."
    return dependency_sentence(
        record.id, str(record.state), ended=record.state in TERMINAL, condition=dependency.condition
    )
