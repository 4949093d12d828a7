"""Rules 1 to 8 of the design, whatever happens to the live service: any life keeps them.

The loop and the store are the real ones. What happens around them is drawn at random: people ask
and cancel, work ends, dies or reports late, the engine is silent or breaks, limits are lowered,
clocks jump, and the service is killed between any two of its acts.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from math import fsum
from pathlib import Path

import pytest
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from carrel.hub.errors import StaleEpoch
from carrel.hub.interfaces.store import Store
from carrel.hub.records.identity import Identity
from carrel.hub.records.leases import LeaseRecord, LeaseState
from carrel.hub.records.ledger import LedgerKind
from carrel.hub.requests.attempt_reports import AttemptReports
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.termination import RequestTermination
from carrel.hub.scheduling.model.snapshot import Budget, Health, Kind, MarkKind, Period
from carrel.hub.scheduling.model.states import HOLDS_DEVICES, TABLE, TERMINAL, State
from carrel.hub.schemas import SessionIn, StartedIn
from carrel.hub.sessions.lifecycle import SessionLifecycle
from carrel.hub.store import open_store

from ...property_settings import examples
from ..doubles import STUDENT1, STUDENT2
from ..mortal import EVERY, Killed, everything
from ..requests.samples import job
from ..surroundings import DEVICES, Surroundings, picked

LONGEST = 250
"""Rounds after which everything has come to its end, if it ever does."""
PATIENT = 100
PICK = st.integers(0, 7)
PEOPLE = st.sampled_from([STUDENT1, STUDENT2])
GROUPS = st.sampled_from(["cs101", "lab"])
JOBS = st.fixed_dictionaries(
    {
        "group": GROUPS,
        "devices": st.sampled_from([0, 1, 1, 2]),
        "seconds": st.sampled_from([50, 600, 600]),
        "retries": st.sampled_from([None, 0, 1]),
        "priority": st.sampled_from(["normal", "opportunistic"]),
    }
)
CODES = st.sampled_from(["succeeded", "cell_error", "connection_failed", "cancelled"])
STRANGER = StartedIn(pid=7, started_at=1.0)
STEPS = frozenset((before, after) for (before, _), after in TABLE.items())
HOUR = 3600.0


class Lives(Surroundings):
    """Each step is an event around the service; each invariant is one of the rules."""

    def teardown(self) -> None:
        try:
            if sys.exc_info()[0] is None:
                self.everything_comes_to_its_end()
        finally:
            self.store.close()
            self.folder.cleanup()

    # -- users --------------------------------------------------------------------------------

    @initialize(
        jobs=st.lists(st.tuples(PEOPLE, JOBS), min_size=1, max_size=5),
        budget=st.sampled_from([None, 200.0]),
    )
    def several_ask(
        self, jobs: list[tuple[Identity, dict[str, object]]], budget: float | None
    ) -> None:
        for who, what in jobs:
            self.submit(who, what)
        self.limits_change(DEVICES, 2, budget, "cs101")

    @rule(who=PEOPLE, what=JOBS)
    def submit(self, who: Identity, what: dict[str, object]) -> None:
        body = job(**what, notebook=None, command=["true"], parameters={})
        self.allowed(JobService(self.context).submit, who, body)

    @rule(who=PEOPLE, devices=st.integers(0, 1))
    def start_a_session(self, who: Identity, devices: int) -> None:
        """Start a session within the guaranteed quota, because sessions may not borrow."""
        wanted = SessionIn(devices=devices, hours=1.0, group="cs101")
        self.allowed(SessionLifecycle(self.context).start, who, "", wanted)

    @rule(pick=PICK)
    def cancel(self, pick: int) -> None:
        """Cancel a request; an ended one stays as it is."""
        for request in picked(self.requests(*State), pick):
            self.allowed(
                RequestTermination(self.context).cancel, Identity(name=request.owner), request.id
            )

    @rule(
        most=st.sampled_from([0, 1, 2, 3, 3]),
        each=st.sampled_from([1, 2, 2]),
        budget=st.sampled_from([None, None, 50.0, 200.0]),
        group=GROUPS,
    )
    def limits_change(self, most: int, each: int, budget: float | None, group: str) -> None:
        given = None if budget is None else Budget(device_seconds=budget, period=Period.WEEK)
        before = self.store.group(group)
        limits = replace(before, max_devices=most, max_devices_per_user=each, budget=given)
        self.store.put_group(limits)

    # -- what runs ----------------------------------------------------------------------------

    @rule(pick=PICK, forks=st.booleans())
    def a_spawner_comes(self, pick: int, forks: bool) -> None:
        """Launch a granted session; the hub may die before there is a process."""
        for request in picked(self.requests(State.GRANTED, kind=Kind.SESSION), pick):
            assert request.lease is not None
            AttemptReports(self.context).launch(request.lease.id)
            if forks:
                self.backend.fork(request.lease.id)

    @rule(pick=PICK)
    def an_attempt_reports_itself(self, pick: int) -> None:
        for lease in picked(self.backend.alive(), pick):
            self.allowed(AttemptReports(self.context).started, lease, self.handle_of(lease))

    @rule(pick=PICK, code=CODES, delivered=st.booleans(), exits=st.booleans())
    def work_ends(self, pick: int, code: str, delivered: bool, exits: bool) -> None:
        for lease in picked(self.backend.alive(), pick):
            attempt = self.backend.attempts[lease]
            if attempt.order is not None:
                made = self.backend.report(lease, "ended", {"code": code}, at=self.clock.now)
                if delivered:
                    self.allowed(self.report, lease, made.seq, code)
            if exits:
                self.backend.end(lease)

    @rule(pick=PICK)
    def a_process_dies(self, pick: int) -> None:
        for lease in picked(self.backend.alive(), pick):
            self.backend.end(lease, exit_status=-9)

    @rule(pick=PICK, stubborn=st.booleans())
    def a_process_hangs(self, pick: int, stubborn: bool) -> None:
        for lease in picked(self.backend.alive(), pick):
            self.backend.attempts[lease].stubborn = stubborn

    @rule(pick=PICK, what=st.sampled_from(["launch", "started", "ended"]))
    def something_comes_back_late(self, pick: int, what: str) -> None:
        """Rule 6: deliver a late report of any attempt."""
        late: dict[str, Callable[[str], object]] = {
            "launch": AttemptReports(self.context).launch,
            "started": lambda lease: AttemptReports(self.context).started(lease, STRANGER),
            "ended": lambda lease: self.report(lease, 99, "succeeded"),
        }
        stale = [lease for lease in self.leases() if lease.state is LeaseState.RELEASED]
        for lease in picked(stale, pick):
            before = everything(self.store)
            with pytest.raises(StaleEpoch):
                late[what](lease.id)
            assert everything(self.store) == before

    @rule(pick=PICK)
    def another_process_claims_a_lease(self, pick: int) -> None:
        for request in picked(self.requests(State.RUNNING), pick):
            assert request.lease is not None
            before = everything(self.store)
            with pytest.raises(StaleEpoch):
                AttemptReports(self.context).started(request.lease.id, STRANGER)
            assert everything(self.store) == before

    # -- the engine ---------------------------------------------------------------------------

    @rule(
        how=st.sampled_from(["silent", "loses_answers"]), on=st.sampled_from([True, False, False])
    )
    def the_engine_is_away(self, how: str, on: bool) -> None:
        setattr(self.backend, how, on)

    @rule(why=st.sampled_from(["", "", "No space left on device."]))
    def the_engine_refuses(self, why: str) -> None:
        self.backend.refuse_starts = why

    @rule(number=st.integers(0, DEVICES - 1), health=st.sampled_from([Health.OK, Health.SICK]))
    def a_device_breaks_or_is_mended(self, number: int, health: Health) -> None:
        self.backend.set_health(f"SIM-{number}", health)
        if health is Health.OK:
            self.store.remove_mark(f"SIM-{number}", MarkKind.QUARANTINE)

    # -- time, and the service ----------------------------------------------------------------

    @rule(seconds=st.sampled_from([1.0, 4.0, 20.0, 65.0, 200.0]), settle=st.booleans())
    def time_goes_on(self, seconds: float, settle: bool) -> None:
        self.clock.pass_(seconds)
        self.witness()
        if settle:
            self.cycle()
            self.work_all()

    @rule(seconds=st.sampled_from([-HOUR, HOUR]))
    def the_clock_jumps(self, seconds: float) -> None:
        self.jumped = True
        self.time_goes_on(seconds, settle=False)

    @rule(seconds=st.sampled_from([0.0, 4.0, 65.0, 65.0]))
    def a_while(self, seconds: float) -> None:
        """Let ordinary time pass: granted requests start, report their start, and run."""
        self.cycle()
        self.work_all()
        for lease in self.backend.alive():
            self.allowed(AttemptReports(self.context).started, lease, self.handle_of(lease))
        self.time_goes_on(seconds, settle=True)

    @rule()
    def a_cycle(self) -> None:
        self.cycle()

    @rule(pick=PICK)
    def slow_work_is_done(self, pick: int) -> None:
        """Run one waiting action: a start, a stop or a check."""
        if self.executor.waiting:
            self.executor.work(pick)

    @rule(acts=st.integers(0, 12), cycles=st.integers(1, 2))
    def the_service_is_killed(self, acts: int, cycles: int) -> None:
        """Kill the service after so many further actions."""
        self.fuse.left = acts
        with contextlib.suppress(Killed):
            for _ in range(cycles):
                self.cycle()
                self.work_all()
        self.loop = self.service()

    @rule()
    def nothing_happens(self) -> None:
        """Rule 7: a further cycle, also of a restarted service, changes nothing."""
        before = None
        for _ in range(LONGEST):
            if before == (before := (everything(self.store), self.backend.alive())):
                break
            self.loop = self.service()
            self.cycle()
            self.work_all()
        else:
            raise AssertionError("the service never comes to rest")
        self.cycle()
        self.work_all()
        assert (everything(self.store), self.backend.alive()) == before

    # -- the rules ----------------------------------------------------------------------------

    @invariant()
    def no_device_is_lent_twice(self) -> None:
        """Rule 1, in the store and on the machine."""
        for leases in (self.store.leases(), [self.store.lease(x) for x in self.backend.alive()]):
            held = [name for lease in leases for name in lease.devices]
            assert len(held) == len(set(held))

    @invariant()
    def every_request_has_one_end(self) -> None:
        """Rule 3."""
        for request in self.store.requests(EVERY):
            events = self.store.events(request.id, kinds=frozenset({"state"}))
            states = [State(str(event.data["state"])) for event in events]
            assert states[-1] is request.state
            assert STEPS.issuperset(pairwise(states)), states
            if request.state in TERMINAL:
                assert self.ended.setdefault(request.id, request) == request
        found = {request.id for request in self.store.requests(EVERY)}
        assert found.issuperset(self.ended)

    @invariant()
    def what_runs_holds_its_lease(self) -> None:
        """Rule 5; a lease is live exactly while its request holds devices."""
        live = {lease.id for lease in self.store.leases()}
        assert live.issuperset(self.backend.alive())
        holds = replace(EVERY, states=HOLDS_DEVICES)
        assert live == {r.lease.id for r in self.store.requests(holds) if r.lease is not None}

    @invariant()
    def every_moment_of_a_lease_is_charged_once(self) -> None:
        """Rules 4 and 8: the entries of a lease have no gap, whatever the clock did."""
        self.witness()
        lines = {lease.id: [lease.granted_at] for lease in self.leases()}
        credited = dict[str, float]()
        for entry in self.store.ledger():
            assert entry.device_seconds == entry.devices * (entry.ends_at - entry.starts_at) or (
                entry.kind is LedgerKind.CREDIT
            )
            if entry.kind is LedgerKind.CREDIT:
                assert entry.lease_id not in credited
                credited[entry.lease_id] = entry.device_seconds
            else:
                assert entry.starts_at == lines[entry.lease_id][-1] < entry.ends_at
                lines[entry.lease_id].append(entry.ends_at)
        for lease in self.leases():
            spent = len(lease.devices) * (lines[lease.id][-1] - lease.granted_at)
            assert credited.get(lease.id, -spent) == -spent
            if lease.devices:
                assert lines[lease.id][-1] == lease.charged_until
            self.is_charged_for_what_it_had(lease)

    def is_charged_for_what_it_had(self, lease: LeaseRecord) -> None:
        """Check the charge: at most to the last heartbeat, at least to the last stored one."""
        assert lease.charged_until <= max(lease.granted_at, self.witnessed.get(lease.id, 0.0))
        if lease.state is not LeaseState.RELEASED or not lease.devices or self.jumped:
            return
        events = self.store.events(lease.request_id, kinds=frozenset({"state"}))
        own = [event.data for event in events if event.epoch == lease.epoch]
        # An attempt that ended by a device fault is not charged.
        forgiven = any("device_fault" in str(data.get("cause")) for data in own)
        ran = any(data["state"] == "running" for data in own)
        assert forgiven or not ran or lease.charged_until >= lease.seen_at

    @invariant()
    def the_ledger_is_what_people_are_shown(self) -> None:
        """Rule 4."""
        for who in (None, "student1", "student2"):
            shown = self.store.usage(now=self.clock.now, owner=who)
            owed = fsum(entry.device_seconds for entry in self.store.ledger(owner=who))
            assert fsum(usage.charged for usage in shown) == pytest.approx(owed)
        ids = [request.id for request in self.store.requests(EVERY)]
        by_request = fsum(self.store.charged(ids).values())
        assert by_request == pytest.approx(fsum(e.device_seconds for e in self.store.ledger()))

    # -- within -------------------------------------------------------------------------------

    def everything_comes_to_its_end(self) -> None:
        """Let everything work from now on: all accepted requests end, and no process is left."""
        self.ordinary_limits()
        self.backend.silent = self.backend.loses_answers = False
        self.backend.refuse_starts = ""
        for number in range(DEVICES):
            self.a_device_breaks_or_is_mended(number, Health.OK)
        for number in range(LONGEST):
            if all(request.state in TERMINAL for request in self.store.requests(EVERY)):
                break
            self.all_goes_well()
            # A clock that was set back prolongs waits by as much.
            self.clock.pass_(HOUR if self.jumped and number > PATIENT else 5.0)
            self.witness()
            self.cycle()
            self.work_all()
        assert self.requests() == []
        assert self.store.leases() == ()
        assert self.backend.alive() == []
        self.every_request_has_one_end()
        self.every_moment_of_a_lease_is_charged_once()
        self.the_ledger_is_what_people_are_shown()
        assert all(usage.open == 0 for usage in self.store.usage(now=self.clock.now))
        self.nothing_happens()

    def all_goes_well(self) -> None:
        for request in self.requests(State.GRANTED, kind=Kind.SESSION):
            assert request.lease is not None
            AttemptReports(self.context).launch(request.lease.id)
            self.backend.fork(request.lease.id)
        for lease in self.backend.alive():
            self.backend.attempts[lease].stubborn = False
            state = self.store.request(self.store.lease(lease).request_id).state
            if state is State.STARTING:
                AttemptReports(self.context).started(lease, self.handle_of(lease))
            elif state is State.RUNNING:
                self.work_ends(self.backend.alive().index(lease), "succeeded", True, True)
                break


class LivesInSql(Lives):
    def make_store(self) -> Store:
        return open_store(Path(self.folder.name) / "carrel.db")


LIVES = {"stateful_step_count": 40, "database": None, "suppress_health_check": list(HealthCheck)}


@pytest.mark.hypothesis
def test_the_rules_hold_in_any_life() -> None:
    run_state_machine_as_test(Lives, settings=examples(20, 2000, **LIVES))


@pytest.mark.hypothesis
def test_the_rules_hold_in_any_life_over_sqlite() -> None:
    run_state_machine_as_test(LivesInSql, settings=examples(3, 100, **LIVES))
