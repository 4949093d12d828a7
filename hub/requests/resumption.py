"""Resume an ended job: a notebook from the last cell whose variables were saved.

A command starts again, and finds its checkpoint by ``carrel.resume_path()``.

An ended request stays ended: a new one refers to it by ``JobSpec.resumes``. A job that is queued
again goes on in its next attempt in the same way, without a new request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..attempts import snapshots
from ..attempts.notebook_format import read_notebook
from ..attempts.snapshots import ChangedCell, VariableSnapshot
from ..errors import Conflict, InvalidInput
from ..records.identity import Identity
from ..records.requests import JobSpec, RequestRecord
from ..runtime.context import Context
from ..scheduling.model.snapshot import Kind
from ..scheduling.model.states import TERMINAL
from ..schemas import NotebookIn
from ..schemas.resume import ChangedCellOut, ResumeIn, ResumeOut
from .access import RequestAccess
from .jobs import JobService, same_job
from .outputs import kept_folders, resumed_job


def latest_snapshot(
    context: Context, request: RequestRecord, *, before: int | None = None
) -> VariableSnapshot | None:
    """Return the newest snapshot of the attempts of a job, or of the job that it resumes.

    Args:
        before: only of attempts before this epoch; None: of all.
    """
    job: RequestRecord | None = request
    while job is not None and job.job is not None and job.job.notebook_name:
        for folder in kept_folders(context.files, job, before=before):
            found = snapshots.find(folder)
            if found is not None:
                return found
        job, before = resumed_job(context.store, job), None
    return None


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
        again = same_job(record, c.files, owner=who.name)
        plan = _ResumePlan()
        if job.sweep is not None and body.from_cell:
            raise InvalidInput(
                f"{record.id} is a sweep: its trials that have succeeded do not run again, the "
                "others run from the first cell.",
                accepted="Omit the cell.",
                field="from_cell",
            )
        if again.notebook is not None:
            before = _code(job.notebook_name, again.notebook.content)
            if body.notebook is not None:
                edited = NotebookIn(name=job.notebook_name, content=body.notebook)
                again = again.model_copy(update={"notebook": edited})
            now = before if body.notebook is None else _code(job.notebook_name, body.notebook)
            snapshot = latest_snapshot(c, record) if job.sweep is None else None
            plan = _resume_plan(before, now, snapshot, body.from_cell)
        elif body.from_cell or body.notebook is not None:
            raise InvalidInput(
                f"{record.id} is a command: it has no cells.",
                accepted="Omit the cell and the notebook. The command starts again, and finds its "
                "checkpoint by carrel.resume_path().",
                field="from_cell" if body.from_cell else "notebook",
            )
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
            start=plan.start,
            cells=plan.cells,
            changed=[ChangedCellOut(number=one.number, diff=one.diff) for one in plan.changed],
            left_out=dict(plan.left_out),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _ResumePlan:
    """From which cell a notebook goes on; a command has no cells."""

    start: int = 1
    cells: int = 0
    changed: tuple[ChangedCell, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)


def _resume_plan(
    before: Sequence[str],
    now: Sequence[str],
    snapshot: VariableSnapshot | None,
    from_cell: int | None,
) -> _ResumePlan:
    known = snapshot.number + 1 if snapshot is not None else 1
    changed = snapshots.changed_cells(before, now, until=from_cell or known)
    start = min(known, len(now))
    if from_cell:
        start = snapshots.check_start(from_cell, snapshot, len(now))
    elif changed:
        start = 1
    left_out = snapshot.left_out if snapshot is not None and start > 1 else {}
    return _ResumePlan(start=start, cells=len(now), changed=changed, left_out=left_out)


def _resumable(record: RequestRecord) -> JobSpec:
    job = record.job
    if job is None or record.kind is not Kind.JOB:
        raise InvalidInput(
            f"{record.id} is not a job.", accepted="A job that has failed, or was stopped."
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
