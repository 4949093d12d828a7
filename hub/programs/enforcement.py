"""Enforce the limits of programs on jobs that were submitted already; a duty of the loop.

- A job that its owner has not approved in time is cancelled.
- The queued jobs of a revoked program are cancelled; its running jobs go on.
- The jobs of a program that has used more than its budget, which attempts after a failure can
  cause, are stopped.
"""

from __future__ import annotations

import logging

from ..messages.programs import APPROVAL_DAYS, APPROVAL_SECONDS
from ..records.identity import Program, ProgramJob
from ..records.requests import Cause, CauseCode
from ..runtime.context import Context
from ..scheduling.model.states import State
from ..transitions import lifecycle

log = logging.getLogger(__name__)

EVERY = 1.0
"""Seconds between two passes."""


class ProgramEnforcement:
    """Called by the loop; it has no state."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    def reconcile(self, now: float) -> bool:
        """Stop what may not run; return whether anything changed."""
        jobs = self._store.program_jobs()
        if not jobs:
            return False
        # What a program has used grows only while it holds devices.
        running = {job.program.id: job.program for job in jobs if job.holds}
        used = self._store.programs_used(frozenset(running), now) if running else {}
        spent = {name for name, each in running.items() if used[name] > each.device_seconds}
        changed = False
        for job in jobs:
            cause = _over(job.program) if job.program.id in spent else _cause(job, now)
            if cause is None:
                continue
            changed |= self._end(job, cause, now)
        return changed

    def _end(self, job: ProgramJob, cause: Cause, now: float) -> bool:
        before = self._store.request(job.request_id)
        queued = before.state is State.QUEUED
        if before.state is State.STOPPING or (cause.code is CauseCode.CANCELLED and not queued):
            return False
        target = State.CANCELLED if cause.code is CauseCode.CANCELLED else State.FAILED
        log.info("%s ends: %s", job.request_id, cause.message)
        self._store.apply(job.request_id, lifecycle.stop, target, cause, now=now)
        return True


def _cause(job: ProgramJob, now: float) -> Cause | None:
    """Return why a queued job is cancelled; None if it is not."""
    program = job.program
    if program.revoked_at is not None:
        by = "its owner" if program.revoked_by == program.owner else program.revoked_by
        message = f"The program {program.name} was revoked by {by}."
    elif job.waits and now >= job.submitted_at + APPROVAL_SECONDS:
        message = f"Its owner did not approve it within {APPROVAL_DAYS} days."
    else:
        return None
    return Cause(code=CauseCode.CANCELLED, message=message)


def _over(program: Program) -> Cause:
    return Cause(
        code=CauseCode.BUDGET, message=f"The program {program.name} has used up its budget."
    )
