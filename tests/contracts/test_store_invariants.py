"""Invariants of the store that hold after any sequence of calls, valid or refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from carrel.hub.errors import CarrelError
from carrel.hub.interfaces.store import Store
from carrel.hub.records.events import NewEvent
from carrel.hub.records.leases import Handle
from carrel.hub.records.ledger import LedgerKind
from carrel.hub.records.requests import Cause, CauseCode, RequestFilter
from carrel.hub.scheduling.model.idleness import IdleWarning
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.scheduling.model.snapshot import Mark, MarkKind
from carrel.hub.scheduling.model.states import HOLDS_DEVICES, TERMINAL, State
from carrel.hub.transitions import idle_warnings, lifecycle, owner_changes

from ..property_settings import examples
from ..stores import new_store
from .store_kit import CANCELLED, DEAD, device, furnish, job, session

FAULT = Cause(code=CauseCode.DEVICE_FAULT, message="Its device failed.")
# Whole and half seconds add up exactly in any order; the clock jumps in both directions.
TIMES = st.integers(0, 200).map(lambda half: half / 2)
REQUESTS = st.sampled_from(["j-0", "j-1", "j-2", "s-0", "s-1"])
LEASES = st.tuples(REQUESTS, st.integers(1, 3)).map(lambda pair: f"{pair[0]}.{pair[1]}")
SERVERS = st.sampled_from(["", "gpu"])
DEVICES = st.lists(st.sampled_from(["D0", "D1", "D2"]), max_size=2).map(tuple)
HANDLES = st.builds(Handle, pid=st.integers(1, 2), started_at=st.just(1.0))


class RandomCalls(RuleBasedStateMachine):
    """Calls every method with random arguments; ``CarrelError`` is the only way to refuse."""

    def __init__(self) -> None:
        super().__init__()
        self.store: Store = new_store()
        furnish(self.store)

    def teardown(self) -> None:
        self.store.close()

    def call(self, method: Callable[[Store], object]) -> None:
        """Call a method; a refusal changes nothing that is visible."""
        before = self.visible()
        try:
            method(self.store)
        except CarrelError:
            assert self.visible() == before

    def visible(self) -> tuple[object, ...]:
        store = self.store
        return store.requests(RequestFilter()), store.leases(), store.devices(), store.ledger()

    @rule(number=st.integers(0, 2), devices=st.integers(0, 2), now=TIMES)
    def submit_job(self, number: int, devices: int, now: float) -> None:
        self.call(lambda s: s.submit(job(str(number), devices=devices), now))

    @rule(number=st.integers(0, 1), now=TIMES)
    def submit_session(self, number: int, now: float) -> None:
        self.call(lambda s: s.submit(session(str(number)), now))

    @rule(plan=st.lists(st.tuples(REQUESTS, DEVICES), min_size=1, max_size=4), now=TIMES)
    def grant(self, plan: list[tuple[str, tuple[str, ...]]], now: float) -> None:
        starts = [Start(request_id=name, devices=devices) for name, devices in plan]
        self.call(lambda s: s.grant(starts, now=now, lease_seconds=30))

    @rule(now=TIMES)
    def grant_queued_requests(self, now: float) -> None:
        waiting = self.store.snapshot(200).pending
        starts = [Start(request_id=w.id, devices=("D0", "D1", "D2")[: w.devices]) for w in waiting]
        self.call(lambda s: s.grant(starts, now=now, lease_seconds=30))

    @rule(lease=LEASES, now=TIMES, token=st.sampled_from(["", "t1", "t2"]))
    def launch(self, lease: str, now: float, token: str) -> None:
        self.call(lambda s: s.launch(lease, now=now, token_hash=token))
        self.call(lambda s: s.lease_of_token(token))

    @rule(lease=LEASES, handle=HANDLES, now=TIMES)
    def started(self, lease: str, handle: Handle, now: float) -> None:
        self.call(lambda s: s.apply_to_lease(lease, lifecycle.start, handle, now=now))

    @rule(now=TIMES, handle=HANDLES)
    def run_everything(self, now: float, handle: Handle) -> None:
        for lease in self.store.leases():
            self.launch(lease.id, now, "")
            self.started(lease.id, handle, now)

    @rule(name=REQUESTS, end=st.sampled_from(sorted(TERMINAL)), now=TIMES)
    def stop(self, name: str, end: State, now: float) -> None:
        self.call(lambda s: s.apply(name, lifecycle.stop, end, CANCELLED, now=now))

    @rule(name=REQUESTS, server=SERVERS, now=TIMES, desk=st.booleans())
    def keep_place(self, name: str, server: str, now: float, desk: bool) -> None:
        new = replace(session("desk"), devices=0) if desk else None
        self.call(lambda s: s.keep_place(name, server, now=now, desk=new))

    @rule(name=REQUESTS, now=TIMES)
    def claim(self, name: str, now: float) -> None:
        self.call(lambda s: s.apply(name, owner_changes.claim, now=now))

    @rule(name=REQUESTS, now=TIMES, upto=TIMES)
    def unclaimed(self, name: str, now: float, upto: float) -> None:
        self.call(
            lambda s: s.apply(
                name, owner_changes.cancel_unclaimed, CANCELLED, now=now, charge_until=upto
            )
        )

    @rule(name=REQUESTS, now=TIMES)
    def extend(self, name: str, now: float) -> None:
        self.call(lambda s: s.apply(name, owner_changes.extend, 60, by="ada", now=now))

    @rule(name=REQUESTS, now=TIMES)
    def warn(self, name: str, now: float) -> None:
        warning = IdleWarning(warned_at=now, stops_at=now + 10, idle_since=now, seen=("It slept.",))
        self.call(lambda s: s.apply(name, idle_warnings.warn, warning, now=now))

    @rule(name=REQUESTS, now=TIMES)
    def withdraw_warning(self, name: str, now: float) -> None:
        self.call(lambda s: s.apply(name, idle_warnings.withdraw_warning, "A cell ran.", now=now))

    @rule(name=REQUESTS, now=TIMES)
    def keep_idle(self, name: str, now: float) -> None:
        self.call(lambda s: s.apply(name, idle_warnings.keep, now=now))

    @rule(name=REQUESTS, now=TIMES)
    def halt(self, name: str, now: float) -> None:
        self.call(lambda s: s.apply(name, lifecycle.halt, FAULT, now=now))

    @rule(where=st.sampled_from(["D0", "n1"]), now=TIMES, on=st.booleans())
    def drain(self, where: str, now: float, on: bool) -> None:
        mark = Mark(target=where, kind=MarkKind.DRAIN, since=now, by="root")
        if on:
            self.call(lambda s: s.put_mark(mark))
        else:
            self.call(lambda s: s.remove_mark(where, MarkKind.DRAIN))

    @rule(lease=LEASES, now=TIMES, upto=TIMES)
    def finish(self, lease: str, now: float, upto: float) -> None:
        self.call(lambda s: s.apply_to_lease(lease, lifecycle.finish, now=now, charge_until=upto))

    @rule(lease=LEASES, now=TIMES, upto=TIMES)
    def give_back(self, lease: str, now: float, upto: float) -> None:
        self.call(
            lambda s: s.apply_to_lease(lease, lifecycle.give_back, now=now, charge_until=upto)
        )

    @rule(lease=LEASES, now=TIMES, upto=TIMES)
    def lose(self, lease: str, now: float, upto: float) -> None:
        self.call(
            lambda s: s.apply_to_lease(lease, lifecycle.lose, DEAD, now=now, charge_until=upto)
        )

    @rule(signs=st.dictionaries(LEASES, TIMES, max_size=3), now=TIMES)
    def renew(self, signs: dict[str, float], now: float) -> None:
        self.call(lambda s: s.renew(signs, until=now + 30))

    @rule(leases=st.lists(LEASES, max_size=2))
    def suspect(self, leases: list[str]) -> None:
        self.call(lambda s: s.suspect(leases))

    @rule(leases=st.lists(LEASES, max_size=3), now=TIMES)
    def charge(self, leases: list[str], now: float) -> None:
        self.call(lambda s: s.charge(leases, now=now))

    @rule(lease=LEASES, seqs=st.lists(st.integers(1, 4), max_size=3), at=TIMES)
    def report(self, lease: str, seqs: list[int], at: float) -> None:
        events = [NewEvent(seq=seq, at=at, kind="log", data={"seq": seq}) for seq in seqs]
        self.call(lambda s: s.add_events(lease, events))

    @rule(count=st.integers(0, 3), simulated=st.booleans())
    def sync_devices(self, count: int, simulated: bool) -> None:
        seen = [device(f"D{i}", i, simulated=simulated) for i in range(count)]
        self.call(lambda s: s.sync_devices("n1", seen))

    @rule(owner=st.sampled_from([None, "ada", "eve"]), now=TIMES)
    def read_usage(self, owner: str | None, now: float) -> None:
        """What was charged by owner and group, and by request, is the sum of the ledger."""
        ledger = self.store.ledger(owner=owner)
        usage = self.store.usage(now=now, owner=owner)
        charged = self.store.charged([line.request_id for line in ledger])
        total = sum(line.device_seconds for line in ledger)
        assert sum(each.charged for each in usage) == total
        assert sum(charged.values()) == total

    @invariant()
    def no_device_is_in_two_allocations(self) -> None:
        held = [
            name for holding in self.store.snapshot(200).allocations for name in holding.devices
        ]
        assert len(held) == len(set(held))

    @invariant()
    def a_lease_is_live_exactly_while_its_request_holds_devices(self) -> None:
        live = {lease.request_id for lease in self.store.leases()}
        holds = RequestFilter(states=HOLDS_DEVICES)
        assert live == {request.id for request in self.store.requests(holds)}

    @invariant()
    def intervals_of_a_lease_never_overlap(self) -> None:
        ends: dict[str, float] = {}
        for entry in self.store.ledger():
            if entry.kind is LedgerKind.CREDIT:
                continue
            assert entry.starts_at >= ends.get(entry.lease_id, 0.0)
            assert entry.device_seconds == entry.devices * (entry.ends_at - entry.starts_at)
            ends[entry.lease_id] = entry.ends_at


TestRandomCalls = RandomCalls.TestCase
TestRandomCalls.settings = examples(20, 1000, stateful_step_count=25, database=None)
