"""Both stores, given the same random history, always answer the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

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
from carrel.hub.store import MemoryStore, open_store

from ..property_settings import examples
from .store_kit import CANCELLED, DEAD, device, furnish, job, session

FAULT = Cause(code=CauseCode.DEVICE_FAULT, message="Its device failed.")
# Whole and half seconds add up exactly in any order; the clock jumps in both directions.
TIMES = st.integers(0, 200).map(lambda half: half / 2)
REQUESTS = st.sampled_from(["j-0", "j-1", "j-2", "s-0", "s-1"])
LEASES = st.tuples(REQUESTS, st.integers(1, 3)).map(lambda pair: f"{pair[0]}.{pair[1]}")
SERVERS = st.sampled_from(["", "gpu"])
DEVICES = st.lists(st.sampled_from(["D0", "D1", "D2"]), max_size=2).map(tuple)
HANDLES = st.builds(Handle, pid=st.integers(1, 2), started_at=st.just(1.0))


class Twins(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.memory: Store = MemoryStore()
        self.sql: Store = open_store(Path(self.folder.name) / "c.db")
        for store in (self.memory, self.sql):
            furnish(store)

    def teardown(self) -> None:
        self.sql.close()
        self.folder.cleanup()

    def both(self, ask: Callable[[Store], object]) -> None:
        """One question to both: the same value, or the same error in the same words."""
        assert _answer(ask, self.memory) == _answer(ask, self.sql)

    @rule(number=st.integers(0, 2), devices=st.integers(0, 2), now=TIMES)
    def submit_job(self, number: int, devices: int, now: float) -> None:
        self.both(lambda s: s.submit(job(str(number), devices=devices), now))

    @rule(number=st.integers(0, 1), now=TIMES)
    def submit_session(self, number: int, now: float) -> None:
        self.both(lambda s: s.submit(session(str(number)), now))

    @rule(plan=st.lists(st.tuples(REQUESTS, DEVICES), min_size=1, max_size=4), now=TIMES)
    def grant(self, plan: list[tuple[str, tuple[str, ...]]], now: float) -> None:
        starts = [Start(request_id=name, devices=devices) for name, devices in plan]
        self.both(lambda s: s.grant(starts, now=now, lease_seconds=30))

    @rule(now=TIMES)
    def grant_what_waits(self, now: float) -> None:
        waiting = self.memory.snapshot(200).pending
        starts = [Start(request_id=w.id, devices=("D0", "D1", "D2")[: w.devices]) for w in waiting]
        self.both(lambda s: s.grant(starts, now=now, lease_seconds=30))

    @rule(lease=LEASES, now=TIMES, token=st.sampled_from(["", "t1", "t2"]))
    def launch(self, lease: str, now: float, token: str) -> None:
        self.both(lambda s: s.launch(lease, now=now, token_hash=token))
        self.both(lambda s: s.lease_of_token(token))

    @rule(lease=LEASES, handle=HANDLES, now=TIMES)
    def started(self, lease: str, handle: Handle, now: float) -> None:
        self.both(lambda s: s.started(lease, handle, now=now))

    @rule(now=TIMES, handle=HANDLES)
    def run_everything(self, now: float, handle: Handle) -> None:
        for lease in self.memory.leases():
            self.launch(lease.id, now, "")
            self.started(lease.id, handle, now)

    @rule(name=REQUESTS, end=st.sampled_from(sorted(TERMINAL)), now=TIMES)
    def stop(self, name: str, end: State, now: float) -> None:
        self.both(lambda s: s.stop(name, end, CANCELLED, now=now))

    @rule(name=REQUESTS, server=SERVERS, now=TIMES, desk=st.booleans())
    def keep_place(self, name: str, server: str, now: float, desk: bool) -> None:
        new = replace(session("desk"), devices=0) if desk else None
        self.both(lambda s: s.keep_place(name, server, now=now, desk=new))

    @rule(name=REQUESTS, now=TIMES)
    def claim(self, name: str, now: float) -> None:
        self.both(lambda s: s.claim(name, now=now))

    @rule(name=REQUESTS, now=TIMES, upto=TIMES)
    def unclaimed(self, name: str, now: float, upto: float) -> None:
        self.both(lambda s: s.unclaimed(name, CANCELLED, now=now, charge_until=upto))

    @rule(name=REQUESTS, now=TIMES)
    def extend(self, name: str, now: float) -> None:
        self.both(lambda s: s.extend(name, 60, by="ada", now=now))

    @rule(name=REQUESTS, now=TIMES)
    def warn(self, name: str, now: float) -> None:
        warning = IdleWarning(warned_at=now, stops_at=now + 10, idle_since=now, seen=("It slept.",))
        self.both(lambda s: s.warn_idle(name, warning, now=now))

    @rule(name=REQUESTS, now=TIMES)
    def spare(self, name: str, now: float) -> None:
        self.both(lambda s: s.withdraw_warning(name, "A cell ran.", now=now))

    @rule(name=REQUESTS, now=TIMES)
    def keep(self, name: str, now: float) -> None:
        self.both(lambda s: s.keep_idle(name, now=now))

    @rule(name=REQUESTS, now=TIMES)
    def halt(self, name: str, now: float) -> None:
        self.both(lambda s: s.halt(name, FAULT, now=now))

    @rule(where=st.sampled_from(["D0", "n1"]), now=TIMES, on=st.booleans())
    def drain(self, where: str, now: float, on: bool) -> None:
        mark = Mark(target=where, kind=MarkKind.DRAIN, since=now, by="root")
        if on:
            self.both(lambda s: s.put_mark(mark))
        else:
            self.both(lambda s: s.remove_mark(where, MarkKind.DRAIN))

    @rule(lease=LEASES, now=TIMES, upto=TIMES)
    def finish(self, lease: str, now: float, upto: float) -> None:
        self.both(lambda s: s.finish(lease, now=now, charge_until=upto))

    @rule(lease=LEASES, now=TIMES, upto=TIMES)
    def give_back(self, lease: str, now: float, upto: float) -> None:
        self.both(lambda s: s.give_back(lease, now=now, charge_until=upto))

    @rule(lease=LEASES, now=TIMES, upto=TIMES)
    def lose(self, lease: str, now: float, upto: float) -> None:
        self.both(lambda s: s.lose(lease, DEAD, now=now, charge_until=upto))

    @rule(leases=st.lists(LEASES, max_size=3), now=TIMES)
    def renew(self, leases: list[str], now: float) -> None:
        self.both(lambda s: s.renew(leases, now=now, until=now + 30))

    @rule(leases=st.lists(LEASES, max_size=2))
    def suspect(self, leases: list[str]) -> None:
        self.both(lambda s: s.suspect(leases))

    @rule(now=TIMES)
    def charge(self, now: float) -> None:
        self.both(lambda s: s.charge(now=now))

    @rule(lease=LEASES, seqs=st.lists(st.integers(1, 4), max_size=3), at=TIMES)
    def report(self, lease: str, seqs: list[int], at: float) -> None:
        events = [NewEvent(seq=seq, at=at, kind="log", data={"seq": seq}) for seq in seqs]
        self.both(lambda s: s.add_events(lease, events))

    @rule(count=st.integers(0, 3), simulated=st.booleans())
    def look_at_devices(self, count: int, simulated: bool) -> None:
        seen = [device(f"D{i}", i, simulated=simulated) for i in range(count)]
        self.both(lambda s: s.sync_devices("n1", seen))

    @rule(owner=st.sampled_from([None, "ada", "eve"]), now=TIMES)
    def ask_for_figures(self, owner: str | None, now: float) -> None:
        self.both(lambda s: s.usage(now=now, owner=owner))
        self.both(lambda s: s.ledger(owner=owner))
        self.both(lambda s: s.ledger(request_id="j-0"))
        self.both(lambda s: s.charged(["j-0", "s-0", "j-x"]))
        self.both(lambda s: s.live_session("ada", ""))

    @invariant()
    def they_agree(self) -> None:
        self.both(lambda s: s.requests(RequestFilter()))
        self.both(lambda s: s.snapshot(200))
        self.both(lambda s: s.leases())

    @invariant()
    def no_device_is_lent_twice(self) -> None:
        held = [name for holding in self.sql.snapshot(200).allocations for name in holding.devices]
        assert len(held) == len(set(held))

    @invariant()
    def a_lease_is_live_exactly_while_its_request_holds_devices(self) -> None:
        live = {lease.request_id for lease in self.sql.leases()}
        holds = RequestFilter(states=HOLDS_DEVICES)
        assert live == {request.id for request in self.sql.requests(holds)}

    @invariant()
    def intervals_of_a_lease_never_overlap(self) -> None:
        ends: dict[str, float] = {}
        for entry in self.sql.ledger():
            if entry.kind is LedgerKind.CREDIT:
                continue
            assert entry.starts_at >= ends.get(entry.lease_id, 0.0)
            assert entry.device_seconds == entry.devices * (entry.ends_at - entry.starts_at)
            ends[entry.lease_id] = entry.ends_at


def _answer(ask: Callable[[Store], object], store: Store) -> object:
    try:
        return ask(store)
    except CarrelError as error:
        return type(error), str(error)


TestTwins = Twins.TestCase
TestTwins.settings = examples(20, 1000, stateful_step_count=25, database=None)
