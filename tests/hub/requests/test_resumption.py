"""Resume an ended job: what is submitted, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import nbformat
import pytest
from pydantic import ValidationError

from carrel.hub.errors import Conflict, Forbidden, InvalidInput, NotFound
from carrel.hub.records.requests import Cause, CauseCode
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.resumption import Resumption, latest_snapshot
from carrel.hub.runtime.context import Context
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.scheduling.model.states import State
from carrel.hub.schemas import JobIn
from carrel.hub.schemas.resume import ResumeIn
from carrel.hub.transitions import lifecycle
from carrel.spawners.fake import FakeBackend

from ...stores import new_store
from ..doubles import STUDENT1, STUDENT2, TEACHER, Clock, FakeHub, build
from .samples import command, job, named

CELLS = ("a = 1", "b = 2", "1 / 0", "c = 3")


def book(*sources: str) -> str:
    cells = [nbformat.v4.new_code_cell(source) for source in sources]  # type: ignore[no-untyped-call]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    made = nbformat.v4.new_notebook(cells=cells, metadata=kernel)  # type: ignore[no-untyped-call]
    text: str = nbformat.writes(made)  # type: ignore[no-untyped-call]
    return text


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return build(new_store(), FakeBackend(), FakeHub(), Clock(), tmp_path)


def failed(context: Context, *, saved: int = 0) -> str:
    """Return a job that has failed, with a snapshot after a cell."""
    made = JobService(context).submit(
        STUDENT1, job(notebook=named("train.ipynb", book(*CELLS)), parameters={}, devices=0)
    )
    store, now = context.store, context.clock()
    store.grant([Start(request_id=made.id, devices=())], now=now, lease_seconds=30.0)
    folder = context.files.attempt_folder(made.id, 1)
    (folder / "output.ipynb").write_text(book(*CELLS))
    if saved:
        (folder / "snapshot-1.pkl").write_bytes(b"")
        header = {
            "file": "snapshot-1.pkl",
            "index": saved - 1,
            "number": saved,
            "python": [3, 11],
            "left_out": {"lock": "TypeError: no"},
        }
        (folder / "snapshot.json").write_text(json.dumps(header))
    end(context, made.id, State.FAILED, CauseCode.CELL_ERROR)
    return made.id


def end(context: Context, request_id: str, state: State, code: CauseCode) -> None:
    store, now = context.store, context.clock()
    store.apply(request_id, lifecycle.stop, state, Cause(code=code, message="It ended."), now=now)
    lease = store.request(request_id).lease
    if lease is not None:
        store.apply_to_lease(lease.id, lifecycle.finish, now=now, charge_until=now)


def test_a_job_goes_on_after_the_cell_whose_variables_were_saved(context: Context) -> None:
    old = failed(context, saved=2)
    found = Resumption(context).resume(STUDENT1, old, ResumeIn(seconds=900))
    assert (found.start, found.cells, found.changed) == (3, 4, [])
    assert found.left_out == {"lock": "TypeError: no"}
    assert found.request is not None
    assert (found.request.resumes, found.request.seconds) == (old, 900)
    assert found.request.notebook == "train.ipynb"
    # A repeated call with the same key returns the first job.
    keyed = ResumeIn(idempotency_key="once")
    first, second = (Resumption(context).resume(STUDENT1, old, keyed) for _ in range(2))
    assert first.request is not None
    assert second.request is not None
    assert first.request.id == second.request.id


def test_a_job_whose_folder_was_deleted_starts_from_its_first_cell(context: Context) -> None:
    old = failed(context, saved=2)
    folder = context.files.attempt_folder(old, 1).parent
    shutil.rmtree(folder)
    assert latest_snapshot(context, context.store.request(old)) is None
    assert not folder.exists()


def test_a_dry_run_submits_nothing(context: Context) -> None:
    old = failed(context, saved=2)
    found = Resumption(context).resume(STUDENT1, old, ResumeIn(dry_run=True))
    assert (found.request, found.start) == (None, 3)


def test_changed_cells_are_shown_and_run_again_unless_a_cell_is_given(context: Context) -> None:
    old = failed(context, saved=2)
    edited = book("a = 1", "b = 20", "print(b)", "c = 3")
    found = Resumption(context).resume(STUDENT1, old, ResumeIn(notebook=edited))
    assert found.start == 1
    assert [cell.number for cell in found.changed] == [2]
    assert "-b = 2\n+b = 20" in found.changed[0].diff
    explicit = Resumption(context).resume(STUDENT1, old, ResumeIn(notebook=edited, from_cell=3))
    assert explicit.start == 3
    assert [cell.number for cell in explicit.changed] == [2]
    corrected = book("a = 1", "b = 2", "print(b)", "c = 3")
    assert Resumption(context).resume(STUDENT1, old, ResumeIn(notebook=corrected)).changed == []


def test_without_a_snapshot_it_starts_from_the_first_cell(context: Context) -> None:
    old = failed(context)
    assert Resumption(context).resume(STUDENT1, old, ResumeIn()).start == 1
    with pytest.raises(InvalidInput, match="no snapshot of its variables"):
        Resumption(context).resume(STUDENT1, old, ResumeIn(from_cell=2))


def test_what_cannot_be_resumed_is_refused(context: Context) -> None:
    old = failed(context, saved=2)
    resume = Resumption(context).resume
    with pytest.raises(InvalidInput, match=r"cannot go on from cell 4\. Its variables were saved"):
        resume(STUDENT1, old, ResumeIn(from_cell=4))
    with pytest.raises(InvalidInput, match="is not a notebook"):
        resume(STUDENT1, old, ResumeIn(notebook="{}"))
    with pytest.raises(NotFound):
        resume(STUDENT2, old, ResumeIn())
    with pytest.raises(NotFound):
        resume(STUDENT1, "j-unknown", ResumeIn())
    with pytest.raises(Forbidden, match="belongs to student1"):
        resume(TEACHER, old, ResumeIn())
    queued = JobService(context).submit(STUDENT1, job())
    with pytest.raises(Conflict, match="has not ended"):
        resume(STUDENT1, queued.id, ResumeIn())
    program = JobService(context).submit(STUDENT1, command())
    with pytest.raises(Conflict, match="has not ended"):
        resume(STUDENT1, program.id, ResumeIn())


def test_the_state_of_a_session_is_taken_by_the_first_attempt(context: Context) -> None:
    state = "0123456789abcdef" * 2
    made = JobService(context).submit(STUDENT1, job(continuation=state, devices=0))
    stored = context.store.request(made.id).job
    assert stored is not None
    assert stored.continuation == state
    assert JobService(context).same_job(STUDENT1, made.id).continuation == state
    start = Start(request_id=made.id, devices=())
    context.store.grant([start], now=context.clock(), lease_seconds=30.0)
    assert JobService(context).same_job(STUDENT1, made.id).continuation == ""
    for name in ("../x", "0" * 31, state.upper()):
        with pytest.raises(ValidationError):
            JobIn(group="cs101", continuation=name)


def test_a_command_starts_again_and_finds_its_checkpoint(context: Context) -> None:
    old = JobService(context).submit(STUDENT1, command())
    end(context, old.id, State.CANCELLED, CauseCode.HALTED)
    resume = Resumption(context).resume
    found = resume(STUDENT1, old.id, ResumeIn())
    assert (found.start, found.cells) == (1, 0)
    assert found.request is not None
    assert (found.request.resumes, found.request.command) == (old.id, old.command)
    for body in (ResumeIn(from_cell=2), ResumeIn(notebook=book("1"))):
        with pytest.raises(InvalidInput, match="is a command: it has no cells"):
            resume(STUDENT1, old.id, body)
