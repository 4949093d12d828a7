"""A held device has one holder, and is not held longer than the claim window."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from carrel.hub.controller.loop import HUB_WINDOW, Loop
from carrel.hub.errors import CarrelError
from carrel.hub.records.identity import Identity
from carrel.hub.records.requests import RequestFilter, RequestRecord
from carrel.hub.requests.termination import RequestTermination
from carrel.hub.scheduling.model.states import State
from carrel.hub.schemas import SessionIn
from carrel.hub.sessions.held import HeldSessions
from carrel.hub.sessions.lifecycle import SessionLifecycle
from carrel.spawners.fake import FakeBackend

from ...property_settings import examples
from ...stores import new_store
from ..doubles import STUDENT1, STUDENT2, Clock, FakeHub, build, device, no_time
from ..world import World

WINDOW = 60.0
PEOPLE = st.sampled_from([STUDENT1, STUDENT2])
PICKS = st.integers(0, 7)


class HeldLeases(RuleBasedStateMachine):
    """Two students and two devices; no server is ever started at the hub."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        clock, hub = Clock(), FakeHub()
        backend = FakeBackend(devices=(device(0), device(1)), clock=clock)
        made = build(new_store(), backend, hub, clock, Path(self.folder.name))
        context = replace(made, claim_seconds=WINDOW)
        self.world = World(
            context, backend, hub, clock, Loop(context, node="local", decision_clock=no_time)
        )
        self.claims = HeldSessions(context)

    def teardown(self) -> None:
        self.world.loop.close()
        self.folder.cleanup()

    @rule(who=PEOPLE, devices=st.integers(1, 2), claim=st.booleans())
    def ask(self, who: Identity, devices: int, claim: bool) -> None:
        options = SessionIn(devices=devices, hours=1.0)
        if claim:
            self._try(lambda: self.claims.start(who, "", options))
        else:
            self._try(lambda: SessionLifecycle(self.world.context).start(who, "", options))

    @rule(who=PEOPLE, pick=PICKS)
    def keep(self, who: Identity, pick: int) -> None:
        self._of(who, pick, lambda found: self.claims.keep_place(who, found.id))

    @rule(who=PEOPLE, pick=PICKS)
    def claim(self, who: Identity, pick: int) -> None:
        self._of(who, pick, lambda found: self.claims.claim(who, found.id))

    @rule(who=PEOPLE, pick=PICKS)
    def cancel(self, who: Identity, pick: int) -> None:
        self._of(
            who, pick, lambda found: RequestTermination(self.world.context).cancel(who, found.id)
        )

    @rule(seconds=st.sampled_from([1.0, 5.0, WINDOW / 2, WINDOW]))
    def time_goes_on(self, seconds: float) -> None:
        self.world.clock.pass_(seconds)
        self.world.settle()

    @rule()
    def the_service_is_killed(self) -> None:
        self.world.restart()

    @invariant()
    def no_device_has_two_holders(self) -> None:
        held = [name for lease in self.world.context.store.leases() for name in lease.devices]
        assert len(held) == len(set(held))

    @invariant()
    def no_moment_of_a_device_is_charged_twice(self) -> None:
        store = self.world.context.store
        spans = sorted(
            (name, entry.starts_at, entry.ends_at)
            for entry in store.ledger()
            for name in store.lease(entry.lease_id).devices
        )
        for (name, _, end), (other, start, _) in pairwise(spans):
            assert name != other or start >= end

    @invariant()
    def nothing_is_held_for_longer_than_the_window(self) -> None:
        """Checked after a cycle."""
        self.world.settle()
        now = self.world.clock.now
        for record in self._requests(State.GRANTED):
            assert record.lease is not None
            since = max(record.claimed_at or 0.0, record.lease.granted_at)
            assert now - since < WINDOW or not record.unclaimed
            assert now - since <= HUB_WINDOW + 10 or record.unclaimed

    def _of(self, who: Identity, pick: int, act: Callable[[RequestRecord], object]) -> None:
        mine = self.world.context.store.requests(RequestFilter(owner=who.name))
        if mine:
            self._try(lambda: act(mine[pick % len(mine)]))

    def _requests(self, state: State) -> tuple[RequestRecord, ...]:
        return self.world.context.store.requests(RequestFilter(states=frozenset({state})))

    @staticmethod
    def _try(act: Callable[[], object]) -> None:
        with contextlib.suppress(CarrelError):
            act()


TestHeldLeases = HeldLeases.TestCase
TestHeldLeases.settings = examples(25, 1000, stateful_step_count=30)
