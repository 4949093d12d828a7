"""A session on one device with idle culling."""

from __future__ import annotations

from dataclasses import dataclass

from carrel.hub.controller.idle_culling import IdleCulling
from carrel.hub.controller.loop import Loop
from carrel.hub.records.leases import Handle
from carrel.hub.requests.attempt_reports import AttemptReports
from carrel.hub.requests.queries import RequestQueries
from carrel.hub.runtime.context import Context
from carrel.hub.schemas import KernelsIn, RequestOut, SessionIn, StartedIn
from carrel.hub.sessions.activity import SessionActivity
from carrel.hub.sessions.lifecycle import SessionLifecycle
from carrel.spawners.fake import FakeAttempt, FakeBackend

from ..doubles import STUDENT1, Clock, no_time

COUNTDOWN = 600.0


NOTHING = KernelsIn(count=1, running=0)


@dataclass
class Room:
    """A session on one device, with its service and idle culler."""

    context: Context
    backend: FakeBackend
    clock: Clock
    culling: IdleCulling
    session: str = ""
    tells: KernelsIn | None = NOTHING

    def start(self, *, devices: int = 1) -> None:
        made = SessionLifecycle(self.context).start(
            STUDENT1, "", SessionIn(devices=devices, hours=8.0)
        )
        self.session = made.id
        loop = Loop(self.context, node="local", decision_clock=no_time)
        loop.cycle()
        loop.close()
        AttemptReports(self.context).launch(self.lease)
        handle = Handle(pid=77, started_at=self.clock.now)
        self.backend.attempts[self.lease] = FakeAttempt(
            order=None,  # type: ignore[arg-type]  # only jobs have one
            handle=handle,
        )
        AttemptReports(self.context).started(
            self.lease, StartedIn(pid=77, started_at=self.clock.now)
        )

    @property
    def activity(self) -> SessionActivity:
        return SessionActivity(self.context, COUNTDOWN)

    @property
    def lease(self) -> str:
        lease = self.now().lease
        assert lease is not None
        return lease.id

    def now(self) -> RequestOut:
        return RequestQueries(self.context).request(None, self.session)

    def pass_(self, seconds: float) -> RequestOut:
        """Let time pass, with kernel reports of the session and samples of the culler."""
        until = self.clock.now + seconds
        while self.clock.now < until:
            self.clock.pass_(min(self.culling.every, until - self.clock.now))
            if self.tells is not None and self.now().state == "running":
                self.activity.report(STUDENT1, self.session, self.tells)
            self.culling.reconcile()
        return self.now()

    def restart(self) -> None:
        """Restart the service as after kill -9: only the store and the engine stay."""
        self.context.kernel_reports.keep_only(())
        self.culling = IdleCulling(self.context, COUNTDOWN)

    def history(self) -> list[str]:
        events = RequestQueries(self.context).events(None, self.session)
        return [event.kind for event in events if event.kind.startswith("idle_")]
