"""Contract of the store."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy.exc import StatementError

from carrel.hub.errors import Conflict, IllegalMove, InvalidInput, NotFound, StaleEpoch
from carrel.hub.interfaces.store import Store
from carrel.hub.records.clock import ClockOffset
from carrel.hub.records.events import EventRecord, NewEvent
from carrel.hub.records.json_value import Json
from carrel.hub.records.leases import Handle, LeaseRecord, LeaseState
from carrel.hub.records.ledger import LedgerEntry, Usage
from carrel.hub.records.requests import Cause, CauseCode, JobSpec, RequestFilter, RequestRecord
from carrel.hub.scheduling.model.idleness import IdleWarning
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.scheduling.model.snapshot import (
    Allocation,
    Group,
    Health,
    Kind,
    PendingRequest,
    PriorityClass,
    Snapshot,
)
from carrel.hub.scheduling.model.states import State
from carrel.hub.transitions import idle_warnings, lifecycle

from .store_kit import (
    CANCELLED,
    DEAD,
    DONE,
    LAB,
    PROCESS,
    charges,
    device,
    furnish,
    granted,
    job,
    running,
    session,
    states,
)


class TestGroups:
    def test_a_group_is_stored_with_all_fields(self, store: Store) -> None:
        course = Group(
            name="cs101",
            parent="lab",
            max_devices=2,
            max_devices_per_user=1,
            max_seconds=60,
            guaranteed=2,
            borrowing=0,
            lending=1,
            weight=2.5,
            models=frozenset({"H100", "A100"}),
            max_sessions=1,
            sessions_borrow=True,
        )
        store.put_group(course)
        assert store.group("cs101") == course
        assert store.groups() == (course, LAB)

    def test_storing_a_group_again_replaces_it(self, store: Store) -> None:
        smaller = replace(LAB, max_devices=1)
        store.put_group(smaller)
        assert store.groups() == (smaller,)

    def test_an_unknown_parent_is_refused_with_the_known_groups(self, store: Store) -> None:
        with pytest.raises(InvalidInput, match=r"parent nowhere .*Groups: lab"):
            store.put_group(Group(name="x", parent="nowhere"))
        assert store.groups() == (LAB,)

    @pytest.mark.parametrize("parent", ["lab", "b"])
    def test_a_cycle_of_groups_is_refused(self, store: Store, parent: str) -> None:
        store.put_group(Group(name="a", parent="lab"))
        store.put_group(Group(name="b", parent="a"))
        with pytest.raises(InvalidInput, match="cycle"):
            store.put_group(replace(LAB, parent=parent))
        assert store.group("lab") == LAB

    def test_a_negative_limit_is_refused(self, store: Store) -> None:
        with pytest.raises(InvalidInput, match="negative"):
            store.put_group(replace(LAB, max_devices=-1))
        with pytest.raises(InvalidInput, match="negative"):
            store.put_group(replace(LAB, borrowing=-1))

    @pytest.mark.parametrize("weight", [0.0, -1.0, float("inf"), float("nan")])
    def test_a_weight_of_zero_is_refused(self, store: Store, weight: float) -> None:
        with pytest.raises(InvalidInput, match=r"weight .* out of range"):
            store.put_group(replace(LAB, weight=weight))
        assert store.group("lab") == LAB

    def test_an_unknown_group_is_refused_with_the_known_ones(self, store: Store) -> None:
        with pytest.raises(NotFound, match=r"no group cs999.*Groups: lab"):
            store.group("cs999")

    def test_teachers_are_replaced_as_a_whole(self, store: Store) -> None:
        store.set_teachers("lab", ["tom", "ann", "tom"])
        assert store.teachers("lab") == ("ann", "tom")
        store.set_teachers("lab", ["eve"])
        assert store.teachers("lab") == ("eve",)
        assert store.taught_by("eve") == {"lab"}
        assert store.taught_by("tom") == frozenset()

    def test_an_unknown_group_has_no_teachers(self, store: Store) -> None:
        assert store.teachers("cs999") == ()
        with pytest.raises(NotFound, match="Groups: lab"):
            store.set_teachers("cs999", ["tom"])


class TestDevices:
    def test_devices_are_sorted_by_node_and_index(self, store: Store) -> None:
        other = [device("E1", 1, node="n0"), device("E0", 0, node="n0")]
        store.sync_devices("n0", other)
        assert [d.id for d in store.devices()] == ["E0", "E1", "D0", "D1"]

    def test_a_new_inventory_replaces_the_old_one(self, store: Store) -> None:
        sick = replace(device("D0"), health=Health.SICK, why="Xid 79")
        store.sync_devices("n1", [sick, device("D1", 1)])
        assert store.devices() == (sick, device("D1", 1))

    def test_a_missing_device_is_gone_until_it_returns(self, store: Store) -> None:
        store.sync_devices("n1", [device("D1", 1)])
        missing = store.devices()[0]
        assert (missing.id, missing.health) == ("D0", Health.GONE)
        assert missing.why
        store.sync_devices("n1", [device("D0"), device("D1", 1)])
        assert store.devices()[0] == device("D0")

    def test_devices_of_other_nodes_are_unchanged(self, store: Store) -> None:
        store.sync_devices("n2", [])
        assert {d.health for d in store.devices()} == {Health.OK}

    def test_unused_simulated_devices_are_removed(self, store: Store) -> None:
        store.sync_devices("sim", [device("S0", node="sim", simulated=True)])
        store.sync_devices("sim", [device("R0", node="sim")])
        assert [d.id for d in store.devices()] == ["D0", "D1", "R0"]

    def test_a_leased_simulated_device_stays_as_gone(self, store: Store) -> None:
        store.sync_devices("sim", [device("S0", node="sim", simulated=True)])
        lease = running(store, job("a"), "S0")
        store.sync_devices("sim", [])
        assert store.devices()[-1].health is Health.GONE
        store.apply_to_lease(lease.id, lifecycle.lose, DEAD, now=110, charge_until=105)
        store.sync_devices("sim", [])
        assert [d.id for d in store.devices()] == ["D0", "D1"]
        assert store.lease(lease.id).devices == ("S0",)

    def test_one_of_several_simulated_devices_is_kept_as_gone(self, store: Store) -> None:
        pair = [device(f"S{i}", i, node="sim", simulated=True) for i in (0, 1)]
        store.sync_devices("sim", pair)
        store.sync_devices("sim", pair[:1])
        assert [d.health for d in store.devices()[2:]] == [Health.OK, Health.GONE]

    def test_health_is_stored_with_its_message(self, store: Store) -> None:
        store.set_health("D1", Health.BUSY, "process 12 works on it")
        busy = store.devices()[1]
        assert (busy.health, busy.why) == (Health.BUSY, "process 12 works on it")
        with pytest.raises(NotFound, match="no device D9"):
            store.set_health("D9", Health.OK, "")


class TestRequests:
    def test_a_request_is_stored_with_all_fields(self, store: Store) -> None:
        spec = JobSpec(
            notebook_name="träin.ipynb",
            parameters={"lr": 0.05, "deep": {"layers": (1, 2), "on": True, "none": None}},
            kernel="python3",
            output_name="out.ipynb",
            internet=False,
        )
        new = replace(
            job("a", devices=2),
            job=spec,
            model="H100",
            priority=PriorityClass.URGENT,
            labels={"course": "cs101"},
        )
        kept = store.submit(new, 100.0)
        parameters: dict[str, Json] = {
            "lr": 0.05,
            "deep": {"layers": [1, 2], "on": True, "none": None},
        }
        assert kept == store.request("j-a")
        assert kept == RequestRecord(
            id="j-a",
            kind=Kind.JOB,
            owner="ada",
            group="lab",
            devices=2,
            seconds=600,
            idempotency_key="a",
            model="H100",
            priority=PriorityClass.URGENT,
            server_name="",
            job=replace(spec, parameters=parameters),
            labels={"course": "cs101"},
            state=State.QUEUED,
            submitted_at=100.0,
        )
        assert store.events("j-a") == (
            EventRecord(
                id=1,
                request_id="j-a",
                epoch=0,
                at=100.0,
                kind="state",
                data={"state": "queued"},
            ),
        )

    def test_the_same_key_of_one_owner_is_one_request(self, store: Store) -> None:
        first = store.submit(job("a", key="k"), 100)
        assert store.submit(job("b", key="k", devices=2), 200) == first
        assert store.submit(job("c", key="k", owner="bob"), 200).id == "j-c"
        assert states(store, "j-a") == ["queued"]

    def test_the_same_key_returns_a_request_that_has_ended(self, store: Store) -> None:
        store.submit(job("a", key="k"), 100)
        ended = store.apply("j-a", lifecycle.stop, State.CANCELLED, CANCELLED, now=101)
        assert store.submit(job("b", key="k"), 200) == ended

    def test_a_server_has_at_most_one_unfinished_session(self, store: Store) -> None:
        first = store.submit(session("a", server="gpu"), 100)
        assert store.submit(session("b", server="gpu"), 101) == first
        assert store.submit(session("c", server=""), 102).id == "s-c"
        assert store.submit(session("d", server="gpu", owner="bob"), 103).id == "s-d"
        store.apply("s-a", lifecycle.stop, State.CANCELLED, CANCELLED, now=104)
        assert store.live_session("ada", "gpu") is None
        assert store.submit(session("e", server="gpu"), 105).id == "s-e"
        live = store.live_session("ada", "gpu")
        assert live is not None
        assert live.id == "s-e"

    def test_a_session_is_stored_with_its_secrets_or_not_at_all(self, store: Store) -> None:
        cannot_be_stored = (object(),)
        with pytest.raises(StatementError):
            store.submit(session("a"), 100, secrets=cannot_be_stored)  # type: ignore[arg-type]
        assert store.requests(RequestFilter()) == ()
        uses = ("TOKEN:file", "KEY:env=KEY@lab")
        first = store.submit(session("a"), 100, secrets=uses)
        assert store.submit(session("b"), 101, secrets=("OTHER:file",)) == first
        assert store.session_secrets("s-a") == uses
        assert store.session_secrets("s-b") == ()

    def test_an_unknown_group_or_a_used_id_stores_nothing(self, store: Store) -> None:
        with pytest.raises(NotFound, match="Groups: lab"):
            store.submit(replace(job("a"), group="cs999"), 100)
        store.submit(job("b"), 100)
        with pytest.raises(Conflict, match="request j-b exists already"):
            store.submit(job("b", owner="bob"), 100)
        assert [r.owner for r in store.requests(RequestFilter())] == ["ada"]

    def test_unknown_records_are_not_found(self, store: Store) -> None:
        asks: list[Callable[[], object]] = [
            lambda: store.request("j-x"),
            lambda: store.lease("j-x.1"),
            lambda: store.lease_of_token(""),
            lambda: store.apply("j-x", lifecycle.stop, State.FAILED, DEAD, now=1),
            lambda: store.launch("j-x.1", now=1),
            lambda: store.apply_to_lease("j-x.1", lifecycle.start, PROCESS, now=1),
            lambda: store.apply_to_lease("j-x.1", lifecycle.finish, now=1, charge_until=1),
            lambda: store.apply_to_lease("j-x.1", lifecycle.give_back, now=1, charge_until=1),
            lambda: store.apply_to_lease("j-x.1", lifecycle.lose, DEAD, now=1, charge_until=1),
            lambda: store.add_events("j-x.1", []),
        ]
        for ask in asks:
            with pytest.raises(NotFound, match="There is no"):
                ask()

    @pytest.mark.parametrize(
        ("which", "found"),
        [
            (RequestFilter(), ["s-d", "j-c", "j-b", "j-a"]),
            (RequestFilter(limit=2), ["s-d", "j-c"]),
            (RequestFilter(limit=0), []),
            (RequestFilter(owner="bob"), ["j-c"]),
            (RequestFilter(groups=frozenset({"cs", "no"})), ["j-b"]),
            (RequestFilter(groups=frozenset()), []),
            (RequestFilter(kind=Kind.SESSION), ["s-d"]),
            (RequestFilter(server_name="gpu"), ["s-d"]),
            (RequestFilter(text="GP"), ["s-d"]),
            (RequestFilter(text="-b"), ["j-b"]),
            (RequestFilter(text="%"), []),
            (RequestFilter(states=frozenset({State.QUEUED})), ["s-d", "j-c", "j-b"]),
            (RequestFilter(states=frozenset({State.CANCELLED})), ["j-a"]),
            (
                RequestFilter(states=frozenset({State.CANCELLED, State.QUEUED}), limit=3),
                ["s-d", "j-c", "j-b"],
            ),
            (RequestFilter(states=frozenset()), []),
        ],
    )
    def test_a_filter_returns_the_newest_first(
        self, store: Store, which: RequestFilter, found: list[str]
    ) -> None:
        store.put_group(replace(LAB, name="cs"))
        store.submit(job("a"), 300)
        store.submit(replace(job("b"), group="cs"), 200)  # the clock was set back
        store.submit(job("c", owner="bob"), 100)
        store.submit(session("d", server="gpu"), 100)
        store.apply("j-a", lifecycle.stop, State.CANCELLED, CANCELLED, now=300)
        assert [r.id for r in store.requests(which)] == found

    def test_the_snapshot_has_the_queue_and_the_allocations(self, store: Store) -> None:
        granted(store, job("a", devices=2), "D1", "D0", at=90)
        store.submit(session("b"), 95)
        granted(store, job("c", devices=0), at=96)
        gone = running(store, job("d", devices=0), at=97)
        store.suspect(["j-c.1"])
        store.apply_to_lease(gone.id, lifecycle.lose, DEAD, now=98, charge_until=98)
        assert store.snapshot(200) == Snapshot(
            devices=store.devices(),
            groups=(LAB,),
            pending=(
                PendingRequest(
                    id="s-b",
                    kind=Kind.SESSION,
                    owner="ada",
                    group="lab",
                    devices=1,
                    seconds=3600,
                    submitted_at=95,
                ),
            ),
            allocations=(
                Allocation(
                    request_id="j-a",
                    owner="ada",
                    group="lab",
                    devices=("D1", "D0"),
                    since=90,
                    until=690,
                    kind=Kind.JOB,
                ),
                Allocation(
                    request_id="j-c", owner="ada", group="lab", devices=(), since=96, until=696
                ),
            ),
        )


class TestGrant:
    def test_a_lease_names_its_devices(self, store: Store) -> None:
        lease = granted(store, job("a", devices=2), "D1", "D0")
        assert lease == LeaseRecord(
            id="j-a.1",
            request_id="j-a",
            epoch=1,
            node="n1",
            devices=("D1", "D0"),
            state=LeaseState.LIVE,
            granted_at=100,
            expires_at=130,
            seen_at=100,
            charged_until=100,
        )
        assert store.request("j-a").state is State.GRANTED
        assert store.request("j-a").lease == store.lease("j-a.1") == lease
        assert store.leases() == (lease,)
        assert store.events("j-a")[-1].data == {
            "state": "granted",
            "lease": "j-a.1",
            "devices": ["D1", "D0"],
        }
        assert store.events("j-a")[-1].epoch == 1

    def test_a_cpu_request_gets_a_lease_without_devices(self, store: Store) -> None:
        lease = granted(store, job("a", devices=0))
        assert (lease.devices, lease.node) == ((), "n1")

    @pytest.mark.parametrize(
        "start",
        [
            Start(request_id="j-x", devices=("D1",)),
            Start(request_id="j-held", devices=("D1",)),
            Start(request_id="j-new", devices=("D0",)),
            Start(request_id="j-new", devices=("D9",)),
            Start(request_id="j-new", devices=("S9",)),
            Start(request_id="j-new", devices=()),
            Start(request_id="j-two", devices=("D1", "D1")),
            Start(request_id="j-two", devices=("D0", "D1")),
        ],
        ids=[
            "unknown request",
            "not queued",
            "device leased",
            "device unknown",
            "device sick",
            "too few devices",
            "a device twice",
            "one of two leased",
        ],
    )
    def test_an_outdated_start_is_skipped(self, store: Store, start: Start) -> None:
        store.sync_devices("n2", [replace(device("S9", node="n2"), health=Health.SICK)])
        granted(store, job("held"), "D0")
        for new in (job("new"), job("two", devices=2), job("fine", devices=0)):
            store.submit(new, 100)
        fine = Start(request_id="j-fine", devices=())
        leases = store.grant([start, fine], now=101, lease_seconds=30)
        assert [lease.id for lease in leases] == ["j-fine.1"]
        assert store.request("j-new").state is State.QUEUED
        assert len(store.events("j-new")) == 1

    def test_two_starts_of_one_plan_cannot_share_a_device(self, store: Store) -> None:
        starts = []
        for name in "ab":
            store.submit(job(name), 100)
            starts.append(Start(request_id=f"j-{name}", devices=("D0",)))
        assert [x.id for x in store.grant(starts, now=101, lease_seconds=30)] == ["j-a.1"]

    def test_a_grant_checks_limits_lowered_since_the_plan(self, store: Store) -> None:
        store.put_group(replace(LAB, max_devices=1))
        starts = []
        for number, name in enumerate("ab"):
            store.submit(job(name), 100)
            starts.append(Start(request_id=f"j-{name}", devices=(f"D{number}",)))
        assert [x.id for x in store.grant(starts, now=101, lease_seconds=30)] == ["j-a.1"]
        assert store.request("j-b").state is State.QUEUED

    def test_case_5_two_requests_for_the_last_device_one_wins(self, store: Store) -> None:
        racers = 8
        for number in range(racers):
            store.submit(job(str(number)), 100)
        together = threading.Barrier(racers)

        def race(number: int) -> int:
            start = Start(request_id=f"j-{number}", devices=("D0",))
            together.wait()
            return len(store.grant([start], now=101, lease_seconds=30))

        with ThreadPoolExecutor(racers) as threads:
            wins = list(threads.map(race, range(racers)))
        assert sorted(wins) == [0] * (racers - 1) + [1]
        assert [lease.devices for lease in store.leases()] == [("D0",)]

    def test_racing_submits_of_one_key_make_one_request(self, store: Store) -> None:
        racers = 8
        together = threading.Barrier(racers)

        def race(number: int) -> str:
            together.wait()
            new = session(str(number), key="same" if number % 2 else "")
            return store.submit(new, 100).id

        with ThreadPoolExecutor(racers) as threads:
            ids = set(threads.map(race, range(racers)))
        assert len(ids) == 1
        assert len(store.requests(RequestFilter(owner="ada", server_name=""))) == 1


class TestMoves:
    def test_a_job_from_its_grant_to_its_end(self, store: Store) -> None:
        lease = granted(store, job("a"), "D0")
        starting = store.launch(lease.id, now=101, token_hash="h")
        assert starting.state is State.STARTING
        started = store.apply_to_lease(lease.id, lifecycle.start, PROCESS, now=102)
        assert (started.state, started.started_at) == (State.RUNNING, 102)
        stopping = store.apply("j-a", lifecycle.stop, State.SUCCEEDED, DONE, now=109)
        assert (stopping.state, stopping.target, stopping.cause) == (
            State.STOPPING,
            State.SUCCEEDED,
            DONE,
        )
        ended = store.apply_to_lease(lease.id, lifecycle.finish, now=110, charge_until=109.5)
        assert ended == store.request("j-a")
        assert ended == replace(
            stopping,
            state=State.SUCCEEDED,
            target=None,
            ended_at=110,
            lease=replace(
                lease,
                state=LeaseState.RELEASED,
                granted_at=101,
                launched_at=101,
                seen_at=102,
                handle=PROCESS,
                released_at=110,
                charged_until=109.5,
            ),
        )
        assert states(store, "j-a") == [
            "queued",
            "granted",
            "starting",
            "running",
            "stopping",
            "succeeded",
        ]
        cause = {"code": "succeeded", "message": "All cells ran."}
        assert store.events("j-a")[-1].data == {"state": "succeeded", "cause": cause}
        assert store.leases() == ()
        assert charges(store) == [("j-a.1", 101, 109.5, 8.5)], "from its launch"

    def test_launching_again_replaces_the_token(self, store: Store) -> None:
        lease = granted(store, job("a"), "D0")
        first = store.launch(lease.id, now=101, token_hash="old")
        assert store.lease_of_token("old").id == lease.id
        assert store.launch(lease.id, now=105, token_hash="new") == first
        assert store.lease_of_token("new").launched_at == 101
        with pytest.raises(NotFound):
            store.lease_of_token("old")
        assert states(store, "j-a") == ["queued", "granted", "starting"]

    def test_a_token_belongs_to_one_attempt(self, store: Store) -> None:
        store.launch(granted(store, job("a"), "D0").id, now=101, token_hash="h")
        other = granted(store, job("b"), "D1")
        with pytest.raises(Conflict, match="token"):
            store.launch(other.id, now=101, token_hash="h")
        assert store.request("j-b").state is State.GRANTED

    def test_the_token_of_a_released_lease_still_tells_which_it_was(self, store: Store) -> None:
        lease = granted(store, job("a"), "D0")
        store.launch(lease.id, now=101, token_hash="h")
        store.apply_to_lease(lease.id, lifecycle.give_back, now=102, charge_until=102)
        assert store.lease_of_token("h").state is LeaseState.RELEASED

    def test_launching_past_starting_is_illegal(self, store: Store) -> None:
        lease = running(store, job("a"), "D0")
        with pytest.raises(IllegalMove):
            store.launch(lease.id, now=110)

    def test_case_2_a_start_reported_twice_is_one_start(self, store: Store) -> None:
        lease = running(store, job("a"), "D0")
        before = store.request("j-a")
        assert store.apply_to_lease(lease.id, lifecycle.start, PROCESS, now=111) == before
        assert states(store, "j-a")[-1] == "running"
        assert len(store.events("j-a")) == 4

    @pytest.mark.parametrize(
        "other", [Handle(pid=1, started_at=99.5), Handle(pid=4711, started_at=1)]
    )
    def test_a_second_process_is_fenced(self, store: Store, other: Handle) -> None:
        lease = running(store, job("a"), "D0")
        with pytest.raises(StaleEpoch, match=f"Process 4711 .* process {other.pid} may not"):
            store.apply_to_lease(lease.id, lifecycle.start, other, now=111)

    def test_a_process_that_reports_after_the_stop_is_refused(self, store: Store) -> None:
        lease = granted(store, job("a"), "D0")
        with pytest.raises(IllegalMove):
            store.apply_to_lease(lease.id, lifecycle.start, PROCESS, now=101)
        store.launch(lease.id, now=101)
        store.apply("j-a", lifecycle.stop, State.CANCELLED, CANCELLED, now=102)
        with pytest.raises(IllegalMove):
            store.apply_to_lease(lease.id, lifecycle.start, PROCESS, now=103)

    def test_stopping_a_queued_request_ends_it(self, store: Store) -> None:
        store.submit(job("a"), 100)
        ended = store.apply("j-a", lifecycle.stop, State.CANCELLED, CANCELLED, now=105)
        assert (ended.state, ended.ended_at, ended.cause) == (State.CANCELLED, 105, CANCELLED)
        assert store.snapshot(200).pending == ()
        assert store.ledger() == ()

    def test_stopping_a_granted_request_releases_its_device(self, store: Store) -> None:
        granted(store, job("a"), "D0")
        ended = store.apply("j-a", lifecycle.stop, State.TIMED_OUT, CANCELLED, now=105)
        assert ended.lease is not None
        assert (ended.state, ended.lease.state) == (State.TIMED_OUT, LeaseState.RELEASED)
        assert charges(store) == [("j-a.1", 100, 105, 5)]
        granted(store, job("b"), "D0", at=106)

    @pytest.mark.parametrize("launched", [State.STARTING, State.RUNNING])
    def test_a_stopping_request_keeps_its_device_until_its_end(
        self, store: Store, launched: State
    ) -> None:
        lease = granted(store, job("a"), "D0")
        store.launch(lease.id, now=100)
        if launched is State.RUNNING:
            store.apply_to_lease(lease.id, lifecycle.start, PROCESS, now=100)
        assert (
            store.apply("j-a", lifecycle.stop, State.FAILED, DEAD, now=105).state is State.STOPPING
        )
        store.submit(job("b"), 106)
        start = Start(request_id="j-b", devices=("D0",))
        assert store.grant([start], now=106, lease_seconds=30) == ()
        assert (
            store.apply_to_lease(lease.id, lifecycle.finish, now=107, charge_until=107).state
            is State.FAILED
        )
        assert len(store.grant([start], now=107, lease_seconds=30)) == 1

    def test_the_first_cause_is_kept(self, store: Store) -> None:
        lease = running(store, job("a"), "D0")
        first = store.apply("j-a", lifecycle.stop, State.TIMED_OUT, DONE, now=105)
        assert store.apply("j-a", lifecycle.stop, State.CANCELLED, CANCELLED, now=106) == first
        ended = store.apply_to_lease(lease.id, lifecycle.finish, now=107, charge_until=107)
        assert store.apply("j-a", lifecycle.stop, State.CANCELLED, CANCELLED, now=108) == ended
        assert (ended.state, ended.cause) == (State.TIMED_OUT, DONE)

    def test_a_lease_ends_no_earlier_than_it_began(self, store: Store) -> None:
        """The caller may have read the clock just before the grant."""
        granted(store, job("a"), "D0", at=100.004)
        store.apply("j-a", lifecycle.stop, State.CANCELLED, CANCELLED, now=100.0)
        lease = store.request("j-a").lease
        assert lease is not None
        assert lease.granted_at == lease.charged_until == lease.released_at == 100.004

    @pytest.mark.parametrize("target", [State.RUNNING, State.HALTED, State.QUEUED])
    def test_a_request_ends_in_a_terminal_state_only(self, store: Store, target: State) -> None:
        running(store, job("a"), "D0")
        with pytest.raises(IllegalMove, match="cannot end in the state"):
            store.apply("j-a", lifecycle.stop, target, CANCELLED, now=105)
        assert store.request("j-a").state is State.RUNNING

    def test_a_queued_request_cannot_succeed(self, store: Store) -> None:
        store.submit(job("a"), 100)
        with pytest.raises(IllegalMove):
            store.apply("j-a", lifecycle.stop, State.SUCCEEDED, DONE, now=105)
        assert states(store, "j-a") == ["queued"]

    def test_finishing_a_running_request_is_illegal(self, store: Store) -> None:
        lease = running(store, job("a"), "D0")
        with pytest.raises(IllegalMove):
            store.apply_to_lease(lease.id, lifecycle.finish, now=105, charge_until=105)
        assert charges(store) == []

    @pytest.mark.parametrize("launched", [False, True])
    def test_case_1_an_attempt_that_never_ran_returns_to_its_place(
        self, store: Store, launched: bool
    ) -> None:
        lease = granted(store, job("a"), "D0")
        if launched:
            store.launch(lease.id, now=101)
        store.submit(job("b"), 102)
        back = store.apply_to_lease(lease.id, lifecycle.give_back, now=103, charge_until=102.5)
        assert (back.state, back.submitted_at, back.ended_at) == (State.QUEUED, 100, None)
        assert [w.id for w in store.snapshot(200).pending] == ["j-a", "j-b"]
        # Charged from the launch, which an engine that is busy with other starts delays.
        begin = 101 if launched else 100
        assert charges(store) == [("j-a.1", begin, 102.5, 102.5 - begin)]
        assert (
            store.apply_to_lease(lease.id, lifecycle.give_back, now=104, charge_until=104) == back
        )
        assert len(charges(store)) == 1
        (again,) = store.grant(
            [Start(request_id="j-a", devices=("D1",))], now=105, lease_seconds=30
        )
        assert (again.id, again.epoch, again.handle) == ("j-a.2", 2, None)
        assert (
            store.apply_to_lease(lease.id, lifecycle.give_back, now=106, charge_until=106).lease
            == again
        )
        assert store.lease(lease.id).devices == ("D0",)

    def test_a_running_lease_cannot_be_returned(self, store: Store) -> None:
        lease = running(store, job("a"), "D0")
        with pytest.raises(IllegalMove):
            store.apply_to_lease(lease.id, lifecycle.give_back, now=105, charge_until=105)

    def test_a_lost_request_has_failed(self, store: Store) -> None:
        lease = running(store, job("a"), "D0")
        lost = store.apply_to_lease(lease.id, lifecycle.lose, DEAD, now=110, charge_until=104)
        assert (lost.state, lost.cause, lost.ended_at) == (State.FAILED, DEAD, 110)
        assert states(store, "j-a")[-2:] == ["lost", "failed"]
        assert charges(store) == [("j-a.1", 100, 104, 4)]
        assert (
            store.apply_to_lease(lease.id, lifecycle.lose, DEAD, now=120, charge_until=120) == lost
        )
        assert len(charges(store)) == 1

    def test_an_attempt_that_was_not_launched_cannot_be_lost(self, store: Store) -> None:
        lease = granted(store, job("a"), "D0")
        with pytest.raises(IllegalMove):
            store.apply_to_lease(lease.id, lifecycle.lose, DEAD, now=110, charge_until=104)

    def test_a_requeued_job_keeps_the_time_of_its_first_start(self, store: Store) -> None:
        lease = granted(store, job("a"), "D0")
        store.launch(lease.id, now=101)
        assert (
            store.apply_to_lease(
                lease.id, lifecycle.give_back, now=102, charge_until=102
            ).started_at
            is None
        )

    def test_case_3_a_finished_request_is_never_granted_again(self, store: Store) -> None:
        lease = running(store, job("a"), "D0")
        store.apply("j-a", lifecycle.stop, State.SUCCEEDED, DONE, now=105)
        store.apply_to_lease(lease.id, lifecycle.finish, now=106, charge_until=106)
        assert store.snapshot(200).pending == ()
        start = Start(request_id="j-a", devices=("D0",))
        assert store.grant([start], now=107, lease_seconds=30) == ()

    def test_case_10_a_stale_epoch_cannot_act(self, store: Store) -> None:
        old = granted(store, job("a"), "D0")
        store.launch(old.id, now=101)
        store.apply_to_lease(old.id, lifecycle.give_back, now=102, charge_until=102)
        acts: list[Callable[[], object]] = [
            lambda: store.launch(old.id, now=105, token_hash="late"),
            lambda: store.apply_to_lease(old.id, lifecycle.start, PROCESS, now=105),
            lambda: store.add_events(old.id, [NewEvent(seq=1, at=105, kind="log")]),
        ]
        for act in acts:
            with pytest.raises(StaleEpoch, match=r"j-a\.1 is over; the request j-a is queued"):
                act()
        store.grant([Start(request_id="j-a", devices=("D1",))], now=106, lease_seconds=30)
        for act in acts:
            with pytest.raises(StaleEpoch, match=r"Its newest is j-a\.2"):
                act()
        assert store.request("j-a").state is State.GRANTED
        assert store.lease("j-a.2").handle is None

    def test_a_cause_may_contain_any_text(self, store: Store) -> None:
        store.submit(job("a"), 100)
        wild = Cause(code=CauseCode.LOST, message="a\udcffb", details="x\0y")
        kept = store.apply("j-a", lifecycle.stop, State.FAILED, wild, now=101).cause
        assert kept == Cause(code=CauseCode.LOST, message="a?b", details="xy")
        assert store.request("j-a").cause == kept


class TestLeases:
    def test_a_heartbeat_renews_the_lease(self, store: Store) -> None:
        lease = running(store, job("a"), "D0")
        store.suspect([lease.id, "j-x.1"])
        assert store.lease(lease.id).state is LeaseState.SUSPECT
        store.renew({lease.id: 120, "j-x.1": 120}, until=150)
        renewed = replace(lease, seen_at=120, expires_at=150)
        assert store.lease(lease.id) == renewed
        assert store.request("j-a").lease == renewed
        assert store.leases() == (renewed,)

    def test_a_postponed_lease_is_charged_from_its_new_start(self, store: Store) -> None:
        lease = running(store, job("a"), "D0")
        store.postpone({lease.id: 130, "j-x.1": 130}, until=170)
        assert store.lease(lease.id) == replace(
            lease, granted_at=130, charged_until=130, seen_at=130, expires_at=170
        )
        store.renew({lease.id: 140}, until=170)
        store.charge([lease.id], now=140)
        assert store.charged(["j-a"]) == {"j-a": 10}
        store.postpone({lease.id: 150}, until=180)
        assert store.lease(lease.id).granted_at == 130  # something was charged

    def test_a_suspect_lease_still_holds_its_device(self, store: Store) -> None:
        granted(store, job("a"), "D0")
        store.suspect(["j-a.1"])
        store.submit(job("b"), 101)
        start = Start(request_id="j-b", devices=("D0",))
        assert store.grant([start], now=102, lease_seconds=30) == ()

    def test_a_released_lease_is_neither_renewed_nor_suspected(self, store: Store) -> None:
        lease = granted(store, job("a"), "D0")
        store.apply("j-a", lifecycle.stop, State.CANCELLED, CANCELLED, now=105)
        before = store.lease(lease.id)
        store.renew({lease.id: 120}, until=150)
        store.suspect([lease.id])
        assert store.lease(lease.id) == before

    def test_leases_are_sorted_by_age(self, store: Store) -> None:
        granted(store, job("b"), "D0", at=100)
        granted(store, job("a", devices=0), at=100)
        granted(store, job("c"), "D1", at=90)
        assert [lease.id for lease in store.leases()] == ["j-c.1", "j-a.1", "j-b.1"]


class TestCharging:
    def test_charging_continues_where_it_stopped(self, store: Store) -> None:
        lease = running(store, job("a", devices=2), "D0", "D1")
        store.renew({lease.id: 110}, until=140)
        store.charge([lease.id], now=115)
        store.renew({lease.id: 120}, until=150)
        store.charge([lease.id], now=125)
        store.charge([lease.id], now=125)
        store.apply("j-a", lifecycle.stop, State.SUCCEEDED, DONE, now=130)
        store.apply_to_lease(lease.id, lifecycle.finish, now=131, charge_until=130)
        assert charges(store) == [
            ("j-a.1", 100, 110, 20),
            ("j-a.1", 110, 120, 20),
            ("j-a.1", 120, 130, 20),
        ]

    def test_an_entry_names_owner_request_and_devices(self, store: Store) -> None:
        granted(store, job("a"), "D0")
        store.apply("j-a", lifecycle.stop, State.CANCELLED, CANCELLED, now=103)
        assert store.ledger(owner="ada") == (
            LedgerEntry(
                id=1,
                lease_id="j-a.1",
                request_id="j-a",
                epoch=1,
                owner="ada",
                group="lab",
                devices=1,
                starts_at=100,
                ends_at=103,
                device_seconds=3,
            ),
        )
        assert store.ledger(owner="bob") == ()

    @pytest.mark.parametrize("step", [7200.0, -7200.0])
    def test_case_11_times_of_running_work_move_with_the_clock(
        self, store: Store, step: float
    ) -> None:
        furnish(store)
        lease = running(store, job("a"), "D0", at=100)
        done = running(store, job("b"), "D1", at=100)
        store.apply("j-b", lifecycle.stop, State.SUCCEEDED, DONE, now=105)
        store.apply_to_lease(done.id, lifecycle.finish, now=105, charge_until=105)
        ended = store.request("j-b")
        store.renew({lease.id: 110}, until=140)
        store.charge([lease.id], now=110)
        offset = ClockOffset(boot="one", seconds=5.0 + step)
        store.move_times(step, offset)
        assert store.clock_offset() == offset
        assert store.request("j-b") == ended, "what is over stays as it was"
        moved = store.request("j-a")
        assert moved.started_at == 100 + step
        assert moved.lease == replace(
            store.lease(lease.id),
            granted_at=100 + step,
            seen_at=110 + step,
            expires_at=140 + step,
            charged_until=110 + step,
        )
        store.apply("j-a", lifecycle.stop, State.SUCCEEDED, DONE, now=120 + step)
        store.apply_to_lease(lease.id, lifecycle.finish, now=120 + step, charge_until=120 + step)
        assert [entry[3] for entry in charges(store) if entry[0] == lease.id] == [10, 10]

    def test_case_12_a_repeated_end_charges_once(self, store: Store) -> None:
        lease = running(store, job("a"), "D0")
        store.apply("j-a", lifecycle.stop, State.SUCCEEDED, DONE, now=110)
        ended = store.apply_to_lease(lease.id, lifecycle.finish, now=110, charge_until=110)
        assert store.apply_to_lease(lease.id, lifecycle.finish, now=120, charge_until=120) == ended
        assert (
            store.apply_to_lease(lease.id, lifecycle.lose, DEAD, now=120, charge_until=120) == ended
        )
        store.charge([lease.id], now=130)
        assert charges(store) == [("j-a.1", 100, 110, 10)]

    def test_case_11_a_clock_set_back_charges_nothing_twice(self, store: Store) -> None:
        lease = running(store, job("a"), "D0")
        store.renew({lease.id: 110}, until=140)
        store.charge([lease.id], now=110)
        store.renew({lease.id: 50}, until=80)
        store.charge([lease.id], now=50)
        assert store.lease(lease.id).charged_until == 110
        (usage,) = store.usage(now=50)
        assert (usage.charged, usage.open) == (10, 0)
        store.renew({lease.id: 112}, until=140)
        store.charge([lease.id], now=112)
        store.apply("j-a", lifecycle.stop, State.SUCCEEDED, DONE, now=60)
        store.apply_to_lease(lease.id, lifecycle.finish, now=60, charge_until=60)
        assert charges(store) == [("j-a.1", 100, 110, 10), ("j-a.1", 110, 112, 2)]

    def test_case_11_a_heartbeat_from_the_future_is_not_charged_yet(self, store: Store) -> None:
        lease = running(store, job("a"), "D0")
        store.renew({lease.id: 3700}, until=3730)
        store.charge([lease.id], now=104)
        assert charges(store) == [("j-a.1", 100, 104, 4)]

    def test_case_4_a_repeated_stop_releases_once(self, store: Store) -> None:
        lease = running(store, job("a"), "D0")
        for now in (105, 106, 107):
            store.apply("j-a", lifecycle.stop, State.CANCELLED, CANCELLED, now=now)
        assert len(store.snapshot(200).allocations) == 1
        for now in (108, 109):
            store.apply_to_lease(lease.id, lifecycle.finish, now=now, charge_until=now)
        assert store.snapshot(200).allocations == ()
        assert charges(store) == [("j-a.1", 100, 108, 8)]

    def test_no_time_and_no_device_cost_nothing(self, store: Store) -> None:
        granted(store, job("a"), "D0")
        store.apply("j-a", lifecycle.stop, State.CANCELLED, CANCELLED, now=100)
        lease = running(store, job("b", devices=0))
        store.renew({lease.id: 110}, until=140)
        store.charge([lease.id], now=110)
        store.apply_to_lease(lease.id, lifecycle.lose, DEAD, now=120, charge_until=120)
        assert store.ledger() == ()
        assert store.usage(now=130) == ()

    def test_usage_includes_unfinished_leases(self, store: Store) -> None:
        store.put_group(replace(LAB, name="cs"))
        first = running(store, job("a", devices=2), "D0", "D1")
        store.renew({first.id: 110}, until=140)
        store.charge([first.id], now=110)
        store.apply("j-a", lifecycle.stop, State.SUCCEEDED, DONE, now=120)
        store.apply_to_lease(first.id, lifecycle.finish, now=120, charge_until=120)
        running(store, replace(job("b"), group="cs"), "D0", at=120)
        granted(store, job("c", owner="bob"), "D1", at=125)
        ada = (
            Usage(owner="ada", group="cs", charged=0, open=10),
            Usage(owner="ada", group="lab", charged=40, open=0),
        )
        bob = (Usage(owner="bob", group="lab", charged=0, open=5),)
        assert store.usage(now=130) == ada + bob
        assert store.usage(now=130, owner="ada") == ada
        assert store.usage(now=130, owner="eve") == ()

    def test_usage_by_request(self, store: Store) -> None:
        for name, ended in (("a", 103), ("b", 105)):
            granted(store, job(name), "D0")
            store.apply(f"j-{name}", lifecycle.stop, State.CANCELLED, CANCELLED, now=ended)
        assert store.charged(["j-b", "j-a", "j-x"]) == {"j-b": 5, "j-a": 3, "j-x": 0}
        assert store.charged([]) == {}
        assert [entry.ends_at for entry in store.ledger(request_id="j-b")] == [105]
        assert store.ledger(owner="bob", request_id="j-b") == ()


class TestEvents:
    def test_a_repeated_event_is_stored_once(self, store: Store) -> None:
        lease = running(store, job("a"), "D0")
        first = NewEvent(seq=1, at=101, kind="cells", data={"cells": 9})
        second = NewEvent(seq=2, at=102, kind="cell_started", data={"index": 0, "number": 1})
        (added,) = store.add_events(lease.id, [first])
        assert added == EventRecord(
            id=added.id, request_id="j-a", epoch=1, at=101, kind="cells", data={"cells": 9}
        )
        again = store.add_events(lease.id, [first, second, second])
        assert [event.data for event in again] == [second.data]
        assert store.add_events(lease.id, [first, second]) == ()
        assert store.events("j-a", after=added.id) == again
        assert [e.kind for e in store.events("j-a")][-2:] == ["cells", "cell_started"]

    def test_events_are_paged_and_filtered_by_request(self, store: Store) -> None:
        first, second = running(store, job("a"), "D0"), running(store, job("b"), "D1")
        for seq in (1, 2):
            for lease in (first, second):
                store.add_events(lease.id, [NewEvent(seq=seq, at=101, kind="log")])
        logs = [e for e in store.events("j-a") if e.kind == "log"]
        assert store.events("j-a", after=logs[0].id - 1, limit=1) == (logs[0],)
        assert store.events("j-a", after=logs[0].id) == (logs[1],)
        assert store.events("j-x") == ()

    def test_no_event_is_added_after_the_end(self, store: Store) -> None:
        lease = running(store, job("a"), "D0")
        store.apply("j-a", lifecycle.stop, State.SUCCEEDED, DONE, now=105)
        store.add_events(lease.id, [NewEvent(seq=1, at=105, kind="ended")])
        store.apply_to_lease(lease.id, lifecycle.finish, now=106, charge_until=106)
        with pytest.raises(StaleEpoch, match="j-a is succeeded"):
            store.add_events(lease.id, [NewEvent(seq=2, at=107, kind="log")])

    def test_events_are_numbered_by_attempt(self, store: Store) -> None:
        first = granted(store, job("a"), "D0")
        store.add_events(first.id, [NewEvent(seq=1, at=101, kind="log")])
        store.apply_to_lease(first.id, lifecycle.give_back, now=102, charge_until=102)
        store.grant([Start(request_id="j-a", devices=("D0",))], now=103, lease_seconds=30)
        (added,) = store.add_events("j-a.2", [NewEvent(seq=1, at=104, kind="log")])
        assert added.epoch == 2


class TestIdleSessions:
    WARNING = IdleWarning(warned_at=200.0, stops_at=800.0, idle_since=100.0, seen=("It slept.",))

    def test_a_warning_is_stored_with_its_evidence_and_an_event(self, store: Store) -> None:
        running(store, session("1"), "D0")
        warned = store.apply("s-1", idle_warnings.warn, self.WARNING, now=200.0)
        assert warned.warning == store.request("s-1").warning == self.WARNING
        event = store.events("s-1")[-1]
        assert (event.kind, event.at, event.epoch) == ("idle_warning", 200.0, 1)
        assert event.data == {"stops_at": 800.0, "seen": ["It slept."]}

    def test_only_running_sessions_are_warned(self, store: Store) -> None:
        granted(store, session("1"), "D0")
        assert store.apply("s-1", idle_warnings.warn, self.WARNING, now=200.0).warning is None
        assert {event.kind for event in store.events("s-1")} == {"state"}

    def test_a_warning_is_withdrawn_once(self, store: Store) -> None:
        running(store, session("1"), "D0")
        store.apply("s-1", idle_warnings.warn, self.WARNING, now=200.0)
        store.apply("s-1", idle_warnings.withdraw_warning, "A cell ran.", now=230.0)
        assert (
            store.apply("s-1", idle_warnings.withdraw_warning, "A cell ran.", now=260.0).warning
            is None
        )
        told = [(event.kind, event.data) for event in store.events("s-1")]
        assert told[-1] == ("idle_over", {"why": "A cell ran."})
        assert [kind for kind, _ in told].count("idle_over") == 1

    def test_a_session_can_be_kept_once_and_only_during_a_warning(self, store: Store) -> None:
        running(store, session("1"), "D0")
        with pytest.raises(Conflict, match="not about to be stopped"):
            store.apply("s-1", idle_warnings.keep, now=200.0)
        store.apply("s-1", idle_warnings.warn, self.WARNING, now=200.0)
        kept = store.apply("s-1", idle_warnings.keep, now=210.0)
        assert (kept.warning, kept.kept_at) == (None, 210.0)
        store.apply("s-1", idle_warnings.warn, self.WARNING, now=400.0)
        with pytest.raises(Conflict, match="only once"):
            store.apply("s-1", idle_warnings.keep, now=410.0)
        assert store.request("s-1").kept_at == 210.0
        assert [e.kind for e in store.events("s-1") if e.kind != "state"] == [
            "idle_warning", "idle_kept", "idle_warning",
        ]  # fmt: skip  # grouped by meaning

    def test_a_group_has_its_own_idle_time(self, store: Store) -> None:
        assert store.group("lab").idle_seconds == 1800
        store.put_group(replace(LAB, idle_seconds=0))
        assert store.group("lab").idle_seconds == 0
