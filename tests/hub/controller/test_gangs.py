"""Jobs of several members: they start together, and end as a whole."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from carrel.hub.attempts.spec import member_folder
from carrel.hub.controller.gangs import JOIN_SECONDS
from carrel.hub.controller.preemption import PreemptionController, stop_cause
from carrel.hub.errors import CarrelError, Conflict, StaleEpoch
from carrel.hub.interfaces.backend import AttemptStatus, GangSupport, ProcessState
from carrel.hub.records.gangs import MemberEnd, member_id, split_member_id
from carrel.hub.records.leases import Handle
from carrel.hub.records.requests import Cause, CauseCode
from carrel.hub.records.utilization import UtilizationPoint, UtilizationSeries
from carrel.hub.requests.amendments import Amendments
from carrel.hub.requests.attempt_reports import AttemptReports
from carrel.hub.requests.explanation import WaitExplanations
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.resumption import Resumption
from carrel.hub.requests.termination import RequestTermination
from carrel.hub.scheduling.model.plan import Reason, Stop
from carrel.hub.schemas import ChangeIn, EventIn, EventsIn, JobIn, JoinIn, JoinOut, RequestOut
from carrel.hub.schemas.resume import ResumeIn
from carrel.hub.transitions import gang_members, preemption
from carrel.spawners.fake import FakeBackend

from ..doubles import STUDENT1, STUDENT2
from ..requests.samples import job
from ..world import World, charged, world
from .gang_samples import alive, gang

__all__ = ["world"]


def submitted(world: World, body: JobIn) -> RequestOut:
    made = JobService(world.context).submit(STUDENT1, body)
    world.settle()
    return world.see(made)


def join(world: World, request: RequestOut, rank: int) -> JoinOut:
    group = member_id(world.lease(request), rank)
    handle = world.backend.attempts[group].handle
    body = JoinIn(
        pid=handle.pid, started_at=handle.started_at, address="10.0.0.1", port=4000 + rank
    )
    return AttemptReports(world.context).join(group, body)


def running(world: World, body: JobIn, members: int = 2) -> RequestOut:
    made = submitted(world, body)
    for rank in range(members):
        join(world, made, rank)
    assert world.see(made).state == "running"
    return made


def end(world: World, request: RequestOut, rank: int, code: str, message: str = "") -> None:
    """Report the end of a member, whose processes then end."""
    group = member_id(world.lease(request), rank)
    data = {"code": code, "message": message, "details": message}
    event = EventIn.model_validate({"seq": 1, "at": world.clock.now, "kind": "ended", "data": data})
    AttemptReports(world.context).add_events(group, EventsIn(events=[event]))
    world.backend.end(group, exit_status=0 if code == "succeeded" else 1)


def states(request: RequestOut) -> list[tuple[str, int, str]]:
    assert request.lease is not None
    return [(each.role, each.number, each.state) for each in request.lease.members]


def test_members_wait_for_each_other_and_learn_the_address_of_the_first(world: World) -> None:
    made = submitted(world, gang())
    assert (made.state, made.devices) == ("starting", 2)
    assert [
        (order.job.command, [device.id for device in order.devices], order.folder.name)
        for order in (attempt.order for attempt in world.backend.attempts.values())
    ] == [(("python", "w.py"), ["SIM-0"], "1"), (("python", "w.py"), ["SIM-1"], "1.m1")]
    assert join(world, made, 1) == JoinOut(ready=False)
    assert states(world.see(made)) == [("worker", 0, "starting"), ("worker", 1, "starting")]
    ready = JoinOut(ready=True, addresses=["10.0.0.1", "10.0.0.1"], port=4000)
    assert join(world, made, 0) == ready
    assert join(world, made, 1) == ready
    assert world.see(made).state == "running"


class ByHandleOnly(FakeBackend):
    """Finds a runner only by its handle, as one that was forked a moment ago."""

    def status(
        self, leases: Mapping[str, Handle | None], *, trusted: Collection[str] = ()
    ) -> Mapping[str, AttemptStatus]:
        found = super().status(leases, trusted=trusted)
        dead = AttemptStatus(life=ProcessState.DEAD)
        return {
            name: dead if split_member_id(name)[1] is not None and leases[name] is None else status
            for name, status in found.items()
        }


def test_a_member_that_was_forked_a_moment_ago_is_known_by_its_handle(tmp_path: Path) -> None:
    world = World.over(tmp_path)
    world.backend = ByHandleOnly(devices=world.backend.devices, clock=world.clock)
    world.context = replace(world.context, backend=world.backend)
    world.restart()
    made = submitted(world, gang())
    world.settle(3)
    assert (world.see(made).state, world.lease(made)) == ("starting", f"{made.id}.1")
    for rank in (0, 1):
        join(world, made, rank)
    world.settle(3)
    assert world.see(made).state == "running"
    world.loop.close()


def test_a_gang_succeeds_once_all_its_members_have_and_is_charged_for_all_devices(
    world: World,
) -> None:
    made = running(world, gang())
    world.settle()
    world.clock.pass_(100)
    world.settle()
    end(world, made, 1, "succeeded")
    world.settle()
    assert states(world.see(made)) == [("worker", 0, "running"), ("worker", 1, "succeeded")]
    end(world, made, 0, "succeeded")
    world.settle(2)
    ended = world.see(made)
    assert (ended.state, ended.cause and ended.cause.message) == (
        "succeeded",
        "2 members ended without an error.",
    )
    assert charged(world, made) == pytest.approx(200)


def test_the_failure_of_a_member_ends_the_gang_and_names_it(world: World) -> None:
    made = running(world, gang())
    end(world, made, 1, "command_failed", "`python w.py` exited with status 3")
    world.settle(3)
    ended = world.see(made)
    assert ended.cause is not None
    assert (ended.state, ended.cause.code, ended.cause.message) == (
        "failed",
        "command_failed",
        "Member 1 of the role worker failed: `python w.py` exited with status 3",
    )
    assert alive(world) == []
    assert states(ended) == [("worker", 0, "stopped"), ("worker", 1, "failed")]


def test_only_the_roles_that_must_succeed_decide(world: World) -> None:
    roles = (
        {"name": "server", "command": ["serve"]},
        {"name": "worker", "count": 2, "devices": 1, "command": ["work"]},
    )
    made = running(world, gang(*roles, must_succeed=["worker"]), members=3)
    end(world, made, 1, "succeeded")
    end(world, made, 2, "succeeded")
    world.settle(3)
    ended = world.see(made)
    assert (ended.state, ended.cause and ended.cause.message) == (
        "succeeded",
        "The 2 members that must succeed ended without an error.",
    )
    assert alive(world) == []

    made = running(world, gang(*roles, must_succeed=["worker"]), members=3)
    end(world, made, 0, "command_failed", "`serve` exited with status 1")
    world.settle(2)
    assert world.see(made).state == "running"
    assert states(world.see(made))[0] == ("server", 0, "failed")
    end(world, made, 1, "succeeded")
    end(world, made, 2, "succeeded")
    world.settle(3)
    ended = world.see(made)
    assert ended.cause is not None
    assert ended.cause.message == (
        "The 2 members that must succeed ended without an error; 1 other member failed."
    )


def test_a_member_whose_processes_disappear_ends_the_others_and_the_gang_is_retried(
    world: World,
) -> None:
    made = running(world, gang())
    world.backend.end(member_id(world.lease(made), 1), exit_status=-9)
    world.settle()
    # The other one reports that it is being stopped.
    end(world, made, 0, "cancelled", "stopped by a signal (SIGINT)")
    world.settle(3)
    assert alive(world) == [f"{made.id}.2.m0", f"{made.id}.2.m1"]
    history = world.context.store.events(made.id, kinds=frozenset({"state"}))
    causes = [event.data["cause"] for event in history if event.data["state"] == "lost"]
    assert [cause["message"] for cause in causes] == [
        "Lost: Member 1 of the role worker failed: its processes disappeared and reported no "
        "result (exit status -9 of its runner). It is tried again at once (retry 1 of 3)."
    ]


def test_the_end_of_a_long_log_is_kept_with_the_loss_of_its_member(world: World) -> None:
    made = running(world, gang(retries=0))
    folder = member_folder(world.context.files.attempt_folder(made.id, 1), 1)
    folder.mkdir()
    (folder / "log.txt").write_text("step\n" * 500_000 + "the last line\n")
    world.backend.end(member_id(world.lease(made), 1), exit_status=-9)
    world.settle(3)
    lost = world.see(made).cause
    assert lost is not None
    assert lost.details.endswith("step\nthe last line\n")


def test_only_a_part_of_a_long_report_is_kept_with_the_member_and_with_the_gang(
    world: World,
) -> None:
    """The loop reads the members of all leases in every cycle."""
    made = running(world, gang())
    long = "x" * 10**6
    end(world, made, 0, long, long)
    world.settle(3)
    ended = world.see(made)
    assert ended.cause is not None
    assert ended.lease is not None
    found = [ended.cause, ended.lease.members[0].cause]
    assert all(each is not None and len(each.model_dump_json()) < 50_000 for each in found)


def test_a_member_that_the_engine_killed_for_memory_fails_the_gang(world: World) -> None:
    made = running(world, gang())
    both = UtilizationSeries(points=(UtilizationPoint(memory_bytes=90 << 30, readings=1),))
    world.context.store.put_utilization({world.lease(made): both})
    cause = Cause(code=CauseCode.OUT_OF_MEMORY, message="Killed for memory.")
    world.backend.end(member_id(world.lease(made), 0), exit_status=-9, cause=cause)
    world.settle(4)
    ended = world.see(made)
    assert ended.cause is not None
    assert (ended.state, ended.cause.code) == ("failed", "out_of_memory")
    assert "would have needed is not known" in ended.cause.message, "only the sum was measured"


def test_a_gang_whose_member_cannot_be_started_does_not_start_at_all(world: World) -> None:
    world.backend.refuse_member = 1
    made = submitted(world, gang())
    assert (world.see(made).state, alive(world)) == ("queued", [])
    history = world.context.store.events(made.id, kinds=frozenset({"state"}))
    assert (
        history[-1]
        .data["cause"]["message"]
        .startswith("Member 1 of worker: The engine refused it.")
    )


def test_a_gang_waits_only_for_a_while_for_a_member_that_does_not_start(world: World) -> None:
    made = submitted(world, gang())
    join(world, made, 0)
    world.clock.pass_(JOIN_SECONDS + 1)
    world.settle(3)
    assert alive(world) == [f"{made.id}.2.m0", f"{made.id}.2.m1"]
    history = world.context.store.events(made.id, kinds=frozenset({"state"}))
    messages = [event.data["cause"]["message"] for event in history if "cause" in event.data]
    assert messages == [
        "Member 1 of the role worker failed: it did not start within 10 min. It is tried again at "
        "once (retry 1 of 2)."
    ]


def test_a_member_in_the_queue_of_a_cluster_is_waited_for_until_it_has_started(
    world: World,
) -> None:
    made = submitted(world, gang())
    join(world, made, 0)
    late = member_id(world.lease(made), 1)
    alive_there = AttemptStatus(life=ProcessState.ALIVE)
    world.backend.cluster[late] = replace(alive_there, waiting="It waits in Slurm's queue.")
    world.settle()
    world.clock.pass_(JOIN_SECONDS + 1)
    world.settle(3)
    waiting = [("worker", 0, "starting"), ("worker", 1, "starting")]
    assert states(world.see(made)) == waiting
    world.backend.cluster[late] = replace(alive_there, started_at=world.clock.now)
    world.settle(3)
    assert states(world.see(made)) == waiting
    world.clock.pass_(JOIN_SECONDS + 1)
    world.settle()
    assert states(world.see(made)) == [("worker", 0, "starting"), ("worker", 1, "failed")]


def test_a_service_killed_while_it_starts_a_gang_starts_all_members_again(world: World) -> None:
    made = JobService(world.context).submit(STUDENT1, gang())
    world.loop.decide()
    lease = world.lease(made)
    world.context.store.launch(lease, now=world.clock.now, token_hash="x")
    world.restart()
    world.settle(2)
    world.clock.pass_(60)
    world.settle(2)
    for rank in (0, 1):
        join(world, made, rank)
    assert (world.see(made).state, world.lease(made)) == ("running", f"{made.id}.2")


@pytest.mark.parametrize(
    "cause", [None, Cause(code=CauseCode.OUT_OF_MEMORY, message="Killed for memory.")]
)
def test_a_gang_does_not_wait_for_a_member_that_ended_before_it_joined(
    world: World, cause: Cause | None
) -> None:
    roles = (
        {"name": "server", "command": ["serve"]},
        {"name": "worker", "count": 1, "devices": 1, "command": ["work"]},
    )
    made = submitted(world, gang(*roles, must_succeed=["worker"]))
    join(world, made, 1)
    world.backend.end(member_id(world.lease(made), 0), exit_status=70, cause=cause)
    world.settle(4)
    assert alive(world) == [f"{made.id}.2.m0", f"{made.id}.2.m1"]


def test_a_service_killed_after_it_stored_the_end_of_a_member_ends_the_gang(world: World) -> None:
    made = running(world, gang())
    failed = MemberEnd(code="command_failed", message="`python w.py` exited with status 3")
    lease = world.lease(made)
    world.context.store.apply_to_lease(
        lease, gang_members.end_member, 1, failed, now=world.clock.now
    )
    world.backend.end(member_id(lease, 1), exit_status=1)
    world.restart()
    world.settle(4)
    ended = world.see(made)
    assert (ended.state, ended.cause and ended.cause.code) == ("failed", "command_failed")
    assert alive(world) == []


def test_a_restarted_service_keeps_a_running_gang(world: World) -> None:
    made = running(world, gang())
    world.restart()
    world.settle(2)
    assert world.see(made).state == "running"
    assert len(alive(world)) == 2


def test_cancelling_a_gang_stops_all_members(world: World) -> None:
    made = running(world, gang())
    RequestTermination(world.context).cancel(STUDENT1, made.id)
    world.settle(3)
    assert (world.see(made).state, alive(world)) == ("cancelled", [])


def test_a_notice_reaches_all_members_and_member_0_says_that_the_work_is_saved(
    world: World,
) -> None:
    made = running(world, gang())
    RequestTermination(world.context).halt(STUDENT1, made.id)
    world.settle()
    assert sorted(folder.name for folder in world.backend.notices) == ["1", "1.m1"]
    world.clock.pass_(10)
    saved = {"seq": 1, "at": world.clock.now, "kind": "saved", "data": {}}
    event = EventIn.model_validate(saved)
    reports = AttemptReports(world.context)
    assert reports.add_events(member_id(world.lease(made), 1), EventsIn(events=[event])) == 0
    world.settle()
    assert world.see(made).state == "running"
    assert reports.add_events(member_id(world.lease(made), 0), EventsIn(events=[event])) == 1
    world.settle(3)
    halted = world.see(made)
    assert (halted.state, halted.cause and halted.cause.code) == ("cancelled", "halted")
    assert alive(world) == []


def test_a_preempted_gang_is_queued_again_as_a_whole(world: World) -> None:
    made = running(world, gang())
    stop = Stop(
        request_id=made.id, for_request="j-x", why=Reason.BEHIND_OTHERS, group="cs101", lost=0.0
    )
    PreemptionController(world.context).give_notices([stop], world.clock.now)
    record = world.context.store.request(made.id)
    assert record.notice is not None
    world.context.store.apply(
        made.id, preemption.preempt, stop_cause(record.notice), record.notice, now=world.clock.now
    )
    for rank in (0, 1):
        end(world, made, rank, "cancelled", "stopped by a signal (SIGINT)")
    world.settle(3)
    states_of = world.context.store.events(made.id, kinds=frozenset({"state"}))
    moves = [event.data["state"] for event in states_of]
    assert moves[-5:] == ["stopping", "preempted", "queued", "granted", "starting"]
    assert alive(world) == [f"{made.id}.2.m0", f"{made.id}.2.m1"]


def test_a_failed_gang_can_be_resumed_with_all_its_members(world: World) -> None:
    made = running(world, gang())
    end(world, made, 0, "command_failed", "`python w.py` exited with status 1")
    world.settle(3)
    again = Resumption(world.context).resume(STUDENT1, made.id, ResumeIn()).request
    assert again is not None
    assert (again.resumes, again.roles) == (made.id, made.roles)


def test_another_process_cannot_join_as_a_member(world: World) -> None:
    made = running(world, gang())
    group = member_id(world.lease(made), 1)
    body = JoinIn(pid=9, started_at=9.0, address="10.0.0.9", port=9)
    with pytest.raises(StaleEpoch, match="already runs as member 1 of the role worker"):
        AttemptReports(world.context).join(group, body)


def test_an_elastic_gang_starts_with_the_members_that_fit(world: World) -> None:
    JobService(world.context).submit(STUDENT2, job(devices=1))
    world.settle()
    role = {"name": "worker", "minimum": 1, "maximum": 2, "devices": 1, "command": ["work"]}
    made = submitted(world, gang(role))
    assert states(made) == [("worker", 0, "starting")]
    assert made.lease is not None
    assert len(made.lease.devices) == 1


def test_an_elastic_gang_starts_with_the_members_that_the_quota_of_its_owner_leaves(
    world: World,
) -> None:
    world.running_job(devices=1)  # The owner may hold two devices.
    role = {"name": "worker", "minimum": 1, "maximum": 2, "devices": 1, "command": ["work"]}
    made = submitted(world, gang(role))
    assert states(made) == [("worker", 0, "starting")]
    assert submitted(world, gang({**role, "minimum": 2})).state == "queued"


def test_a_queued_gang_says_why_it_waits(world: World) -> None:
    JobService(world.context).submit(STUDENT2, job(devices=1))
    world.settle()
    made = submitted(world, gang())
    assert made.wait is not None
    assert made.wait.sentence == (
        "Queued at position 1. Not enough devices are free; it gets the next ones that are "
        "released."
    )
    why = WaitExplanations(world.context).why(STUDENT1, made.id)
    assert why.suggestions == []
    with pytest.raises(Conflict, match="belong to its members"):
        Amendments(world.context).change(STUDENT1, made.id, ChangeIn(devices=1))


def test_a_gang_can_be_submitted_again(world: World) -> None:
    made = submitted(world, gang(must_succeed=["worker"]))
    again = JobService(world.context).same_job(STUDENT1, made.id)
    repeated = JobService(world.context).submit(STUDENT1, again)
    assert repeated.id != made.id
    assert (repeated.roles, repeated.arrangement, repeated.must_succeed, repeated.devices) == (
        made.roles,
        "pack",
        ["worker"],
        2,
    )


WORKER = {"name": "worker", "command": ["work"], "devices": 1}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {"roles": [{"name": "worker", "count": 2}]},
            "The role worker has no command.",
        ),
        (
            {"roles": [{**WORKER, "minimum": 3, "maximum": 2}]},
            "The role worker has a minimum of 3 members, above its maximum of 2.",
        ),
        (
            {"roles": [{**WORKER, "count": 2, "maximum": 2}]},
            "The role worker has 'count' and also 'minimum' or 'maximum'.",
        ),
        ({"roles": [{**WORKER, "count": 0}]}, "The role worker has 0 members."),
        ({"roles": [WORKER, WORKER]}, "Two roles have the name worker."),
        (
            {"roles": [{**WORKER, "name": "Worker 1"}]},
            "The name 'Worker 1' of a role cannot be used.",
        ),
        ({"roles": [WORKER], "devices": 1}, "The job has roles, and 'devices' beside them."),
        ({"roles": [WORKER], "command": ["x"]}, "The job has roles, and 'command' beside them."),
        (
            {"roles": [WORKER], "notebook": {"name": "a.ipynb", "content": "{}"}},
            "A notebook runs in one kernel and cannot have several members.",
        ),
        (
            {"roles": [WORKER], "must_succeed": ["boss"]},
            "The job has no role 'boss' that must succeed.",
        ),
        (
            {"command": ["x"], "arrangement": "spread"},
            "The job has no roles, so 'arrangement' has no meaning.",
        ),
        (
            {"roles": [{**WORKER, "devices": 0, "count": 2}], "arrangement": "spread"},
            "Members without devices cannot be spread over nodes.",
        ),
        (
            {"roles": [{**WORKER, "count": 2}], "arrangement": "spread"},
            "There are not enough nodes for each member on a node of its own. At most 1 member of "
            "1 device.",
        ),
        (
            {"roles": [{**WORKER, "count": 3}]},
            "One person may hold at most 2 devices in cs101 at one time; you asked for 3.",
        ),
        (
            {"roles": [{**WORKER, "count": 1, "devices": 3}]},
            "One person may hold at most 2 devices in cs101 at one time; you asked for 3.",
        ),
    ],
)
def test_roles_that_cannot_run_are_refused_with_the_reason(
    world: World, body: dict[str, Any], message: str
) -> None:
    with pytest.raises(CarrelError) as refused:
        JobService(world.context).submit(
            STUDENT1, JobIn.model_validate({"group": "cs101", "seconds": 600, **body})
        )
    assert f"{refused.value} {refused.value.accepted}".startswith(message)


def test_an_engine_without_a_network_between_nodes_keeps_a_gang_on_one_node(world: World) -> None:
    why = "The Docker engine on far is in no swarm."
    world.backend.gangs = GangSupport(across_nodes=False, why_one_node=why)
    made = submitted(world, gang())
    assert (made.state, made.arrangement) == ("starting", "node")
    with pytest.raises(CarrelError, match=f"share a network only on one node. {why}"):
        JobService(world.context).submit(STUDENT1, gang(arrangement="spread"))
    world.backend.gangs = GangSupport(most_members=1)
    with pytest.raises(CarrelError, match="The job has 2 members, more than the nodes"):
        JobService(world.context).submit(STUDENT1, gang())
    world.backend.gangs = GangSupport(most_members=0)
    with pytest.raises(CarrelError, match="could not reach each other"):
        JobService(world.context).submit(STUDENT1, gang())
