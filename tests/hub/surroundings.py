"""A state machine test of the loop over a real store: its surroundings and helpers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ParamSpec, TypeVar

from hypothesis.stateful import (
    RuleBasedStateMachine,
)

from carrel.hub.controller.loop import Loop
from carrel.hub.errors import CarrelError
from carrel.hub.interfaces.store import Store
from carrel.hub.records.leases import LeaseRecord
from carrel.hub.records.requests import RequestRecord
from carrel.hub.requests.attempt_reports import AttemptReports
from carrel.hub.runtime.kernel_reports import KernelReports
from carrel.hub.runtime.notifier import ChangeNotifier
from carrel.hub.runtime.pending_server_starts import PendingServerStarts
from carrel.hub.runtime.plan_cache import PlanCache
from carrel.hub.runtime.progress_cache import ProgressCache
from carrel.hub.runtime.spawner_listeners import SpawnerListeners
from carrel.hub.scheduling.model.snapshot import Group, Kind
from carrel.hub.scheduling.model.states import TERMINAL, State
from carrel.hub.schemas import EventIn, EventsIn, StartedIn

from ..stores import new_store
from .doubles import Clock, FakeHub, build, device, no_time
from .mortal import EVERY, Fuse, Guarded, ManualExecutor, mortal

T = TypeVar("T")
P = ParamSpec("P")

DEVICES = 3
INSTANT = 1 / 64
"""Separates the times of requests, so that no random id decides their order."""


class Surroundings(RuleBasedStateMachine):
    """Two users, two groups that lend to each other, three devices, and one service at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.clock, self.hub, self.fuse = Clock(), FakeHub(), Fuse()
        self.hub.members["lab"] = {"student2"}
        self.store = self.make_store()
        devices = tuple(map(device, range(DEVICES)))
        self.backend = Guarded(devices=devices, clock=self.clock, store=self.store)
        where = Path(self.folder.name)
        self.context = build(self.store, self.backend, self.hub, self.clock, where, devices=DEVICES)
        self.ordinary_limits()
        self.executor = ManualExecutor()
        self.loop = self.service()
        self.jumped = False
        self.ended: dict[str, RequestRecord] = {}
        self.witnessed: dict[str, float] = {}
        """The time until which each lease was held by the service or had a process."""

    def make_store(self) -> Store:
        return new_store()

    def service(self) -> Loop:
        """Return a restarted service, which keeps only the store and the engine."""
        self.fuse.left = None
        self.executor = ManualExecutor()
        self.context = replace(
            self.context,
            plan_cache=PlanCache(),
            spawner_listeners=SpawnerListeners(),
            pending_server_starts=PendingServerStarts(),
            kernel_reports=KernelReports(),
            notifier=ChangeNotifier(),
            progress=ProgressCache(self.store),
        )
        return Loop(
            mortal(self.context, self.fuse),
            node="local",
            decision_clock=no_time,
            threads=self.executor,
        )

    def ordinary_limits(self) -> None:
        for name, guaranteed in (("cs101", 1), ("lab", 2)):
            limits = Group(name=name, max_devices=DEVICES, max_devices_per_user=2)
            self.store.put_group(replace(limits, guaranteed=guaranteed))

    def cycle(self) -> None:
        """Run a cycle; check that its grants are within the current limits (rule 2)."""
        before = {lease.id for lease in self.store.leases()}
        spent = self.used_up()
        try:
            self.loop.cycle()
        finally:
            new = [each for each in self.store.leases() if each.id not in before and each.devices]
            for lease in new:
                self.is_within_limits(self.store.request(lease.request_id))
                group = self.store.request(lease.request_id).group
                assert group not in spent & self.used_up()
            self.witness()

    def used_up(self) -> set[str]:
        return {b.group for b in self.store.budgets(self.clock.now) if b.used >= b.budget}

    def is_within_limits(self, request: RequestRecord) -> None:
        group = self.store.group(request.group)
        held = [h for h in self.store.allocations() if h.group == group.name]
        assert sum(len(h.devices) for h in held) <= group.max_devices
        own = [h for h in held if h.owner == request.owner]
        assert sum(len(h.devices) for h in own) <= group.max_devices_per_user

    def work_all(self) -> None:
        while self.executor.waiting:
            self.executor.work()

    def witness(self) -> None:
        """Record that current leases were held until now."""
        held = [r.lease.id for r in self.requests(State.GRANTED) if r.lease is not None]
        for lease in (*held, *self.backend.alive()):
            self.witnessed[lease] = max(self.clock.now, self.witnessed.get(lease, 0.0))

    def requests(self, *states: State, kind: Kind | None = None) -> list[RequestRecord]:
        """Return unfinished requests, or those in these states, oldest first."""
        wanted = frozenset(states) or frozenset(State) - TERMINAL
        return list(self.store.requests(replace(EVERY, states=wanted, kind=kind)))[::-1]

    def leases(self) -> Iterator[LeaseRecord]:
        """Yield all leases, ended ones included."""
        for request in reversed(self.store.requests(EVERY)):
            for epoch in range(1, 1 + (request.lease.epoch if request.lease else 0)):
                yield self.store.lease(f"{request.id}.{epoch}")

    def handle_of(self, lease: str) -> StartedIn:
        handle = self.backend.attempts[lease].handle
        return StartedIn(pid=handle.pid, started_at=handle.started_at)

    def report(self, lease: str, seq: int, code: str) -> None:
        event = EventIn(seq=seq, at=self.clock.now, kind="ended", data={"code": code})
        AttemptReports(self.context).add_events(lease, EventsIn(events=[event]))

    def allowed(self, act: Callable[P, object], *words: P.args, **more: P.kwargs) -> None:
        """Make a call that may be refused with an error of Carrel."""
        self.clock.pass_(INSTANT)
        self.witness()
        with contextlib.suppress(CarrelError):
            act(*words, **more)


def picked(found: Iterable[T], pick: int) -> list[T]:
    """Return one of them as a list; empty if there is none."""
    every = list(found)
    return [every[pick % len(every)]] if every else []
