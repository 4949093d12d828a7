"""Resume an ended notebook job from the last cell whose variables were saved.

An ended request stays ended: a new one refers to it by ``JobSpec.resumes``. A job that is queued
again goes on in its next attempt in the same way, without a new request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..attempts import snapshots
from ..attempts.notebook_format import read_notebook
from ..attempts.snapshots import VariableSnapshot
from ..errors import Conflict, InvalidInput, NotFound
from ..records.identity import Identity
from ..records.requests import JobSpec, RequestRecord
from ..runtime.context import Context
from ..scheduling.model.states import TERMINAL
from ..schemas import NotebookIn
from ..schemas.resume import ChangedCellOut, ResumeIn, ResumeOut
from .access import RequestAccess
from .jobs import JobService, same_job


def latest_snapshot(
    context: Context, request: RequestRecord, *, before: int | None = None
) -> VariableSnapshot | None:
    """Return the newest snapshot of the attempts of a job, or of the job that it resumes.

    Args:
        before: only of attempts before this epoch; None: of all.
    """
    if request.job is None or not request.job.notebook_name:
        return None
    last = request.lease.epoch if request.lease is not None else 0
    for epoch in range(last if before is None else before - 1, 0, -1):
        found = snapshots.find(context.files.attempt_folder(request.id, epoch))
        if found is not None:
            return found
    if not request.job.resumes:
        return None
    try:
        resumed = context.store.request(request.job.resumes)
    except NotFound:
        return None
    return latest_snapshot(context, resumed) if resumed.owner == request.owner else None


@dataclass(frozen=True, slots=True)
class Resumption:
    """Resumes jobs."""

    context: Context

    def resume(self, who: Identity, request_id: str, body: ResumeIn) -> ResumeOut:
        """Queue a job that goes on with an ended one; with ``dry_run`` only say how.

        Raises:
            NotFound, Forbidden: the job is not one of the caller's own.
            Conflict: it has not ended, or has succeeded.
            InvalidInput: the job cannot go on from this cell, or the new notebook is none.
            Refused: the job is not admitted.
        """
        c = self.context
        record = RequestAccess(c.store).owned(who, request_id)
        job = _resumable(record)
        again = same_job(record, c.files)
        assert again.notebook is not None
        before = _code(job.notebook_name, again.notebook.content)
        if body.notebook is not None:
            edited = NotebookIn(name=job.notebook_name, content=body.notebook)
            again = again.model_copy(update={"notebook": edited})
        assert again.notebook is not None
        now = _code(job.notebook_name, again.notebook.content)
        snapshot = latest_snapshot(c, record)
        known = snapshot.number + 1 if snapshot is not None else 1
        changed = snapshots.changed_cells(before, now, until=body.from_cell or known)
        start = min(known, len(now))
        if body.from_cell:
            start = snapshots.check_start(body.from_cell, snapshot, len(now))
        elif changed:
            start = 1
        changes: dict[str, object] = {"idempotency_key": body.idempotency_key}
        for name in ("seconds", "memory_bytes", "devices"):
            value = getattr(body, name)
            if value is not None:
                changes[name] = value
        made = None
        if not body.dry_run:
            made = JobService(c).submit(
                who,
                again.model_copy(update=changes),
                resumes=record.id,
                from_cell=body.from_cell or 0,
            )
        return ResumeOut(
            request=made,
            resumes=record.id,
            start=start,
            cells=len(now),
            changed=[ChangedCellOut(number=one.number, diff=one.diff) for one in changed],
            left_out=dict(snapshot.left_out) if snapshot is not None and start > 1 else {},
        )


def _resumable(record: RequestRecord) -> JobSpec:
    job = record.job
    if job is None or not job.notebook_name:
        raise InvalidInput(
            f"{record.id} is not a notebook job.",
            accepted="A notebook job that has failed, or was stopped. Run a command again instead: "
            "it finds its checkpoint by carrel.resume_path().",
        )
    if record.state not in TERMINAL:
        raise Conflict(
            f"{record.id} has not ended.",
            accepted="Cancel it first, or wait: a job that is queued again goes on by itself.",
        )
    if record.cause is not None and record.cause.code == "succeeded":
        raise Conflict(
            f"{record.id} has succeeded: there is nothing to go on with.",
            accepted="Submit it again.",
        )
    return job


def _code(name: str, content: str) -> Sequence[str]:
    node = read_notebook(name, content).node
    return [str(cell.source) for cell in node.cells if cell.cell_type == "code"]
