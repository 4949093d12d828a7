"""A gang ends as it should, wherever the service is killed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import pytest

from carrel.hub.controller.loop import Loop
from carrel.hub.errors import CarrelError
from carrel.hub.interfaces.backend import LaunchOrder
from carrel.hub.records.gangs import member_id
from carrel.hub.records.leases import Handle, LeaseState
from carrel.hub.records.requests import RequestRecord
from carrel.hub.requests.attempt_reports import AttemptReports
from carrel.hub.requests.jobs import JobService
from carrel.hub.runtime.context import Context
from carrel.hub.scheduling.model.states import State
from carrel.hub.schemas import JoinIn
from carrel.spawners.fake import FakeBackend

from ..doubles import STUDENT1, no_time
from ..mortal import Fuse, Killed, ManualExecutor, mortal
from ..world import World
from .gang_samples import alive, gang

ROLES = (
    {"name": "server", "command": ["serve"]},
    {"name": "worker", "count": 2, "devices": 1, "command": ["work"]},
)
MEMBERS = range(3)
ROUNDS = 14


@dataclass(kw_only=True)
class Interrupted(FakeBackend):
    """An engine that is interrupted between the starts of two members."""

    fuse: Fuse

    def start(self, order: LaunchOrder) -> Handle:
        self.fuse.burn("start")
        return super().start(order)


@dataclass
class Site:
    """A service that is killed after some actions, once, and the runners of a gang."""

    world: World
    fuse: Fuse
    name: str = ""
    loop: Loop = field(init=False)
    executor: ManualExecutor = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    @property
    def mortal(self) -> Context:
        return mortal(self.world.context, self.fuse)

    @property
    def record(self) -> RequestRecord:
        return self.world.context.store.request(self.name)

    def restart(self) -> None:
        self.executor = ManualExecutor()
        self.loop = Loop(self.mortal, node="local", decision_clock=no_time, threads=self.executor)

    def act(self, action: Callable[[], object]) -> None:
        """Let the service act; if it is killed, it is restarted."""
        try:
            action()
        except Killed:
            self.fuse.left = None
            self.restart()
        except CarrelError:
            pass  # the runner is told so

    def cycle(self) -> None:
        self.loop.cycle()
        while self.executor.waiting:
            self.executor.work()

    def group(self, rank: int) -> str:
        lease = self.record.lease
        assert lease is not None
        return member_id(lease.id, rank)

    def join(self, rank: int) -> None:
        attempt = self.world.backend.attempts.get(self.group(rank))
        if attempt is None or not attempt.alive:
            return
        handle = attempt.handle
        body = JoinIn(pid=handle.pid, started_at=handle.started_at, address="10.0.0.1", port=9)
        self.act(lambda: AttemptReports(self.mortal).join(self.group(rank), body))

    def end(self, rank: int, code: str) -> None:
        """Report an end, which is in the journal as well, and end the runner."""
        group, backend = self.group(rank), self.world.backend
        data = {"code": code, "message": code, "details": ""}
        event = backend.report(group, "ended", data, at=self.world.clock.now)
        self.act(lambda: AttemptReports(self.mortal).store_events(group, [event]))
        backend.end(group, exit_status=0 if code == "succeeded" else 1)


def one_fails(site: Site) -> None:
    site.end(2, "command_failed")


def all_succeed(site: Site) -> None:
    for rank in MEMBERS:
        site.end(rank, "succeeded")


def the_workers_succeed(site: Site) -> None:
    for rank in (1, 2):
        site.end(rank, "succeeded")


def one_disappears(site: Site) -> None:
    site.world.backend.end(site.group(1), exit_status=-9)


STORIES: dict[Callable[[Site], None], State] = {
    one_fails: State.FAILED,
    all_succeed: State.SUCCEEDED,
    the_workers_succeed: State.SUCCEEDED,
    one_disappears: State.SUCCEEDED,
}
"""The end of each story; the workers of a second attempt succeed."""


def told(folder: Path, story: Callable[[Site], None], actions: int) -> tuple[Site, bool]:
    """Tell a story to a service that is killed after some actions; return whether it was."""
    world, fuse = World.over(folder), Fuse(left=actions)
    world.loop.close()
    world.backend = Interrupted(devices=world.backend.devices, clock=world.clock, fuse=fuse)
    world.context = replace(world.context, backend=world.backend)
    site = Site(world, fuse)
    site.name = JobService(world.context).submit(STUDENT1, gang(*ROLES, must_succeed=["worker"])).id
    attempts = set[int]()
    for _ in range(ROUNDS):
        site.act(site.cycle)
        record = site.record
        for rank in MEMBERS if record.state is State.STARTING else ():
            site.join(rank)
        if record.state is State.RUNNING and record.lease and record.lease.epoch not in attempts:
            (the_workers_succeed if attempts else story)(site)
            attempts.add(record.lease.epoch)
        world.clock.pass_(5)
    return site, site.fuse.left is None


@pytest.mark.parametrize(
    "story",
    [
        one_fails,
        one_disappears,
        pytest.param(all_succeed, marks=pytest.mark.slow),
        pytest.param(the_workers_succeed, marks=pytest.mark.slow),
    ],
    ids=lambda story: story.__name__,
)
def test_a_gang_ends_as_it_should_wherever_the_service_is_killed(
    story: Callable[[Site], None], tmp_path: Path
) -> None:
    for actions in count():
        folder = tmp_path / str(actions)
        folder.mkdir()
        site, killed = told(folder, story, actions)
        record = site.record
        assert (record.state, alive(site.world)) == (STORIES[story], []), actions
        assert record.lease is not None
        assert record.lease.state is LeaseState.RELEASED
        if not killed:
            return
