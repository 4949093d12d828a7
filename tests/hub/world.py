"""The scheduling loop over a real store and a fake backend, cycled by tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from carrel.hub.controller.loop import Loop
from carrel.hub.records.error_classes import LONGEST_BACK_OFF_SECONDS
from carrel.hub.records.leases import Handle
from carrel.hub.requests.attempt_reports import AttemptReports
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.queries import RequestQueries
from carrel.hub.runtime.context import Context
from carrel.hub.runtime.spawner_listeners import SpawnerListeners
from carrel.hub.schemas import EventIn, EventsIn, RequestOut, SessionIn, StartedIn
from carrel.hub.sessions.lifecycle import SessionLifecycle
from carrel.spawners.fake import FakeAttempt, FakeBackend

from ..stores import new_store
from .doubles import STUDENT1, Clock, FakeHub, build, device, no_time
from .requests.samples import job


@dataclass
class World:
    """A service without its web layer, cycled by tests."""

    context: Context
    backend: FakeBackend
    hub: FakeHub
    clock: Clock
    loop: Loop

    @classmethod
    def over(cls, folder: Path, *, devices: int = 2) -> World:
        """Return a world without requests."""
        clock, hub = Clock(), FakeHub()
        backend = FakeBackend(devices=tuple(map(device, range(devices))), clock=clock)
        context = build(new_store(), backend, hub, clock, folder, devices=devices)
        return cls(
            context, backend, hub, clock, Loop(context, node="local", decision_clock=no_time)
        )

    def settle(self, cycles: int = 1) -> None:
        """Run cycles, and wait after each for the actions that it started."""
        for _ in range(cycles):
            self.loop.cycle()
            assert self.loop.wait_for_actions(60)

    def settle_with_back_offs(self, cycles: int) -> None:
        """``settle``, with enough time after each cycle for any back-off."""
        for _ in range(cycles):
            self.settle()
            self.clock.pass_(LONGEST_BACK_OFF_SECONDS)

    def restart(self) -> None:
        """Restart the service as after kill -9: only the store and the engine stay."""
        self.loop.close()
        self.context = replace(self.context, spawner_listeners=SpawnerListeners())
        self.loop = Loop(self.context, node="local", decision_clock=no_time)

    def see(self, request: RequestOut) -> RequestOut:
        return RequestQueries(self.context).request(None, request.id)

    def lease(self, request: RequestOut) -> str:
        lease = self.see(request).lease
        assert lease is not None
        return lease.id

    def claim(self, request: RequestOut) -> None:
        """Report the start of a job, as its runner does."""
        handle = self.backend.attempts[self.lease(request)].handle
        AttemptReports(self.context).started(
            self.lease(request), StartedIn(pid=handle.pid, started_at=handle.started_at)
        )

    def report(self, request: RequestOut, kind: str, **data: object) -> None:
        event = EventIn.model_validate({"seq": 1, "at": self.clock.now, "kind": kind, "data": data})
        AttemptReports(self.context).add_events(self.lease(request), EventsIn(events=[event]))

    def running_job(self, **changes: object) -> RequestOut:
        made = JobService(self.context).submit(STUDENT1, job(**changes))
        self.settle()
        self.claim(made)
        return made

    def running_session(self, server: str = "") -> RequestOut:
        """Return a session that was queued, granted, and started by a spawner."""
        made = SessionLifecycle(self.context).start(
            STUDENT1, server, SessionIn(devices=1, hours=1.0)
        )
        self.context.spawner_listeners.attach(made.id)
        self.settle()
        AttemptReports(self.context).launch(self.lease(made))
        self.process(made)
        AttemptReports(self.context).started(
            self.lease(made), StartedIn(pid=77, started_at=self.clock.now)
        )
        self.context.spawner_listeners.detach(made.id)
        return made

    def runs(self, request: RequestOut) -> None:
        """Start the process of a session without a report."""
        AttemptReports(self.context).launch(self.lease(request))
        self.process(request)
        self.settle()

    def process(self, request: RequestOut) -> None:
        """Start the process of a session, as the hub does."""
        self.backend.attempts[self.lease(request)] = FakeAttempt(
            order=None,  # type: ignore[arg-type]  # only jobs have one
            handle=Handle(pid=77, started_at=self.clock.now),
        )


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World.over(tmp_path)
    yield made
    made.loop.close()


def charged(world: World, request: RequestOut) -> float:
    return world.context.store.charged([request.id])[request.id]
