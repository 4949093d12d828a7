"""A user halts a running job: notice, saved work, end; what cannot be halted."""

from __future__ import annotations

import pytest

from carrel.hub.controller.preemption import PreemptionController
from carrel.hub.errors import Conflict, InvalidInput, NotFound
from carrel.hub.records.audit import AuditAction, ChangeFilter
from carrel.hub.records.events import NewEvent
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.termination import RequestTermination
from carrel.hub.scheduling.model.plan import Reason, Stop
from carrel.hub.schemas import RequestOut

from ..doubles import STUDENT1, STUDENT2, TEACHER
from ..requests.samples import job
from ..world import World, world

__all__ = ["world"]
GRACE = 120.0


def halt(world: World, request: RequestOut, **changes: str) -> RequestOut:
    return RequestTermination(world.context).halt(STUDENT1, request.id, **changes)


def end(world: World, request: RequestOut) -> tuple[str, str, str]:
    """Let the processes of a job exit; return its state, and the code and text of its cause."""
    world.settle()
    world.backend.end(world.lease(request))
    world.settle(3)
    shown = world.see(request)
    assert shown.cause is not None
    return shown.state, shown.cause.code, shown.cause.message


def test_a_halted_job_gets_the_notice_and_ends_after_its_current_cell(world: World) -> None:
    made = world.running_job()
    assert halt(world, made).state == "running"
    world.settle()
    (notice,) = world.backend.notices.values()
    assert notice.data == {
        "why": "halt",
        "message": "Halted by its owner.",
        "stops_at": world.clock.now + GRACE,
        "comes_back": False,
    }
    shown = world.see(made)
    assert shown.warning is not None
    assert (shown.state, shown.warning.kind) == ("running", "halt")
    world.report(made, "ended", code="halted", message="It stopped after cell 3 of 9.")
    assert end(world, made) == (
        "cancelled",
        "halted",
        "Halted by its owner. It stopped after cell 3 of 9.",
    )


def test_a_halted_job_is_stopped_once_it_has_saved_its_work(world: World) -> None:
    made = world.running_job()
    world.report(made, "saved")  # before the halt: later work is not saved
    world.clock.pass_(1)
    halt(world, made, reason="the exam")
    world.settle()
    assert world.see(made).state == "running"
    world.clock.pass_(1)
    store, lease = world.context.store, world.lease(made)
    store.add_events(lease, [NewEvent(seq=2, at=world.clock.now, kind="saved", data={})])
    world.settle()
    assert end(world, made) == ("cancelled", "halted", "Halted by its owner: the exam")


@pytest.mark.parametrize("restarted", [False, True])
def test_a_halted_job_is_stopped_at_the_end_of_the_grace_period(
    world: World, restarted: bool
) -> None:
    made = world.running_job()
    halt(world, made)
    if restarted:
        world.restart()
    world.settle()
    world.clock.pass_(GRACE - 1)
    assert halt(world, made).state == "running"  # repeated: the end stays
    world.settle()
    assert world.see(made).state == "running"
    world.clock.pass_(1)
    world.settle()
    assert end(world, made)[:2] == ("cancelled", "halted")
    assert world.context.store.leases() == ()


def test_a_halt_replaces_a_preemption_notice_and_keeps_its_end(world: World) -> None:
    made = world.running_job(devices=2)
    waits = JobService(world.context).submit(STUDENT2, job())
    stop = Stop(
        request_id=made.id, for_request=waits.id, why=Reason.GUARANTEE, group="cs102", lost=1.0
    )
    PreemptionController(world.context).give_notices([stop], world.clock())
    world.settle()
    ends = world.clock.now + GRACE
    world.clock.pass_(10)
    halt(world, made)
    world.settle()
    (notice,) = world.backend.notices.values()
    assert (notice.data["why"], notice.stops_at) == ("halt", ends)


@pytest.mark.parametrize("how", ["lost", "transient"])
def test_a_halted_job_is_not_tried_again(world: World, how: str) -> None:
    made = world.running_job(retries=2)
    halt(world, made)
    world.settle()
    if how == "transient":
        world.report(made, "ended", code="connection_failed", message="No route.")
    assert end(world, made)[0] == "failed"


def test_what_does_not_run_cannot_be_halted(world: World) -> None:
    made = world.running_job(devices=2)
    queued = JobService(world.context).submit(STUDENT1, job())
    with pytest.raises(Conflict, match=r"does not run and cannot be halted\. Cancel it instead"):
        halt(world, queued)
    with pytest.raises(NotFound):
        RequestTermination(world.context).halt(STUDENT2, made.id)
    RequestTermination(world.context).cancel(STUDENT1, made.id)
    with pytest.raises(Conflict, match="is being stopped already"):
        halt(world, made)
    end(world, made)
    with pytest.raises(Conflict, match="has ended and cannot be halted"):
        halt(world, made)
    RequestTermination(world.context).cancel(STUDENT1, queued.id)
    session = world.running_session()
    with pytest.raises(InvalidInput, match="is not a job and cannot be halted"):
        halt(world, session)


def test_a_teacher_halts_a_job_and_the_audit_log_says_so(world: World) -> None:
    made = world.running_job()
    RequestTermination(world.context).halt(TEACHER, made.id, "A new fan.")
    world.settle()
    warning = world.see(made).warning
    assert warning is not None
    assert warning.message == (
        "Halted by teacher: A new fan. It ends sooner, once its work is saved."
    )
    (entry,) = world.context.store.changes(ChangeFilter(target=made.id))
    assert (entry.action, entry.target, entry.why) == (
        AuditAction.REQUEST_HALT,
        made.id,
        "A new fan.",
    )
