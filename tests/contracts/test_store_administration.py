"""Contract of the store: marks, audit list, removed groups, credits."""

from __future__ import annotations

from contextvars import copy_context
from pathlib import Path

import pytest

from carrel.hub.errors import Conflict, NotFound
from carrel.hub.interfaces.store import Store
from carrel.hub.records import edits
from carrel.hub.records.audit import AuditAction, AuditEntry, ChangeFilter
from carrel.hub.records.edits import ChangedMeanwhile
from carrel.hub.records.requests import Cause, CauseCode, RequestFilter
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.scheduling.model.snapshot import Group, Health, Mark, MarkKind
from carrel.hub.scheduling.model.states import State
from carrel.hub.store import open_store
from carrel.hub.transitions import lifecycle

from .store_kit import CANCELLED, charges, device, furnish, granted, job, running, states

FAULT = Cause(code=CauseCode.DEVICE_FAULT, message="Its device failed.", details="lost")
DRAIN = Mark(target="n1", kind=MarkKind.DRAIN, since=5.0, why="fan", by="root", until=900.0)
QUARANTINE = Mark(target="D0", kind=MarkKind.QUARANTINE, since=6.0, why="lost")


def change(target: str, who: str = "root", action: AuditAction = AuditAction.DRAIN) -> AuditEntry:
    return AuditEntry(
        at=7.0, who=who, action=action, target=target, before={"a": 1}, after={"a": 2}
    )


def group_set(name: str) -> AuditEntry:
    return change(name, action=AuditAction.GROUP_SET)


class TestMarks:
    def test_marked_devices_are_not_granted(self, store: Store) -> None:
        store.put_mark(DRAIN)
        store.put_mark(QUARANTINE)
        assert store.marks() == (QUARANTINE, DRAIN)
        first, second = store.devices()
        assert (first.marks, second.marks) == ((QUARANTINE, DRAIN), (DRAIN,))
        assert not first.schedulable
        assert not store.snapshot(200).takes_work
        store.submit(job("a"), 1.0)
        assert store.grant([Start(request_id="j-a", devices=("D1",))], now=2, lease_seconds=3) == ()
        store.submit(job("cpu", devices=0), 1.0)
        assert store.grant([Start(request_id="j-cpu", devices=())], now=2, lease_seconds=3) == ()

    def test_a_node_is_removed_with_its_devices_and_marks_once_its_leases_ended(
        self, store: Store
    ) -> None:
        lease = granted(store, job("a"), "D0")
        store.put_mark(DRAIN)
        store.put_mark(QUARANTINE)
        with pytest.raises(Conflict, match="Sessions or jobs run on n1"):
            store.remove_node("n1")
        assert len(store.devices()) == 2
        store.apply("j-a", lifecycle.stop, State.CANCELLED, CANCELLED, now=200.0)
        store.apply_to_lease(lease.id, lifecycle.finish, now=201.0, charge_until=201.0)
        store.remove_node("n1", change=change("n1", action=AuditAction.NODE_REMOVE))
        assert (store.devices(), store.nodes(), store.marks()) == ((), (), ())
        (entry,) = store.changes(ChangeFilter(action=AuditAction.NODE_REMOVE))
        assert entry.target == "n1"
        (past,) = store.requests(RequestFilter())
        assert past.id == "j-a"
        with pytest.raises(NotFound):
            store.remove_node("n1")

    def test_a_new_inventory_keeps_marks(self, store: Store) -> None:
        store.put_mark(QUARANTINE)
        store.sync_devices("n1", [device("D0"), device("D1", 1)])
        store.set_health("D0", Health.OK, "")
        assert store.devices()[0].quarantine == QUARANTINE

    def test_marks_are_replaced_and_removed(self, store: Store) -> None:
        store.put_mark(DRAIN)
        later = Mark(target="n1", kind=MarkKind.DRAIN, since=8.0, by="eve")
        store.put_mark(later)
        assert store.marks() == (later,)
        assert store.remove_mark("n1", MarkKind.DRAIN)
        assert not store.remove_mark("n1", MarkKind.DRAIN)
        assert store.snapshot(200).takes_work

    @pytest.mark.parametrize(
        "mark",
        [
            Mark(target="nowhere", kind=MarkKind.DRAIN, since=1.0),
            Mark(target="n1", kind=MarkKind.QUARANTINE, since=1.0),
        ],
    )
    def test_an_unknown_device_cannot_be_marked(self, store: Store, mark: Mark) -> None:
        with pytest.raises(NotFound):
            store.put_mark(mark, change=change("x"))
        assert store.changes(ChangeFilter()) == ()

    def test_marks_survive_a_restart(self, tmp_path: Path) -> None:
        first = open_store(tmp_path / "c.db")
        furnish(first)
        first.put_mark(QUARANTINE)
        first.close()
        second = open_store(tmp_path / "c.db")
        assert second.devices()[0].quarantine == QUARANTINE
        second.close()


class TestChanges:
    def test_newest_first_and_filtered(self, store: Store) -> None:
        for number, who in enumerate(["root", "eve", "root"]):
            store.add_change(change(f"t{number}", who))
        found = store.changes(ChangeFilter())
        assert [(each.id, each.target) for each in found] == [(3, "t2"), (2, "t1"), (1, "t0")]
        assert (found[0].before, found[0].after) == ({"a": 1}, {"a": 2})
        assert [c.id for c in store.changes(ChangeFilter(who="root"))] == [3, 1]
        assert [c.id for c in store.changes(ChangeFilter(older_than=3, limit=1))] == [2]
        assert [c.id for c in store.changes(ChangeFilter(target="t1"))] == [2]
        assert store.changes(ChangeFilter(action=AuditAction.RELEASE)) == ()

    def test_a_refused_change_is_not_audited(self, store: Store) -> None:
        with pytest.raises(NotFound):
            store.remove_group("nothing", at=1.0, change=change("nothing"))
        assert store.changes(ChangeFilter()) == ()

    def test_a_change_of_an_older_version_is_refused(self, store: Store) -> None:
        """What is stored and its audit entry are one transaction, and so is the check."""
        store.put_group(Group(name="lab", max_devices=1), change=group_set("lab"))

        def based_on(version: int) -> None:
            edits.base_on(version)
            store.put_group(Group(name="lab", max_devices=9), change=group_set("lab"))
            store.put_group(Group(name="lab", max_devices=7), change=group_set("lab"))

        with pytest.raises(ChangedMeanwhile) as refused:
            copy_context().run(based_on, 0)
        assert [(each.id, each.who) for each in refused.value.later] == [(1, "root")]
        assert store.group("lab").max_devices == 1
        store.add_change(change("other"))
        copy_context().run(based_on, 1)  # Its own first entry is no change of another user.
        assert store.group("lab").max_devices == 7
        store.check_unchanged(group_set("lab"))

    def test_a_stop_without_effect_is_not_audited(self, store: Store) -> None:
        store.submit(job("a"), 1.0)
        for _ in range(2):
            store.apply(
                "j-a", lifecycle.stop, State.CANCELLED, CANCELLED, now=2.0, audit=change("j-a")
            )
        assert len(store.changes(ChangeFilter())) == 1


class TestRemovedGroups:
    def test_history_stays_and_the_name_can_come_back(self, store: Store) -> None:
        store.submit(job("a"), 1.0)
        with pytest.raises(Conflict):
            store.remove_group("lab", at=2.0)
        store.apply("j-a", lifecycle.stop, State.CANCELLED, CANCELLED, now=2.0)
        store.set_teachers("lab", ["grace"])
        store.remove_group("lab", at=3.0)
        assert store.groups() == ()
        assert store.taught_by("grace") == frozenset()
        assert store.request("j-a").group == "lab"
        store.put_group(Group(name="lab", max_devices=1))
        assert store.group("lab").max_devices == 1

    def test_a_group_with_subgroups_is_not_removed(self, store: Store) -> None:
        store.put_group(Group(name="below", parent="lab"))
        with pytest.raises(Conflict):
            store.remove_group("lab", at=2.0)


class TestHalting:
    def test_a_halted_attempt_returns_to_its_place_uncharged(self, store: Store) -> None:
        lease = running(store, job("a"), "D0", at=100.0)
        store.renew({lease.id: 160.0}, until=190.0)
        store.charge([lease.id], now=160.0)
        store.apply("j-a", lifecycle.halt, FAULT, now=170.0)
        assert store.request("j-a").state is State.STOPPING
        store.apply_to_lease(lease.id, lifecycle.finish, now=171.0, charge_until=170.0)
        after = store.request("j-a")
        assert (after.state, after.cause, after.submitted_at) == (State.QUEUED, None, 100.0)
        assert states(store, "j-a")[-3:] == ["stopping", "halted", "queued"]
        assert charges(store) == [(lease.id, 100.0, 160.0, 60.0), (lease.id, 100.0, 160.0, -60.0)]
        assert store.charged(["j-a"]) == {"j-a": 0.0}
        assert [usage.charged for usage in store.usage(now=200.0)] == [0.0]
        store.apply_to_lease(lease.id, lifecycle.finish, now=172.0, charge_until=170.0)
        assert len(store.ledger()) == 2

    def test_a_granted_request_is_queued_again(self, store: Store) -> None:
        granted(store, job("a"), "D0")
        assert store.apply("j-a", lifecycle.halt, FAULT, now=101.0).state is State.QUEUED
        assert store.leases() == ()

    def test_a_failure_becomes_another_attempt_and_an_end_does_not(self, store: Store) -> None:
        lease = running(store, job("a"), "D0")
        error = Cause(code=CauseCode.CELL_ERROR, message="CUDA error")
        store.apply("j-a", lifecycle.stop, State.FAILED, error, now=101.0)
        assert store.apply("j-a", lifecycle.halt, FAULT, now=102.0).target is State.HALTED
        assert (
            store.apply("j-a", lifecycle.stop, State.CANCELLED, CANCELLED, now=103.0).target
            is State.CANCELLED
        )
        assert store.apply("j-a", lifecycle.halt, FAULT, now=104.0).target is State.CANCELLED
        assert (
            store.apply_to_lease(lease.id, lifecycle.finish, now=105.0, charge_until=104.0).state
            is State.CANCELLED
        )
        assert store.apply("j-a", lifecycle.halt, FAULT, now=106.0).state is State.CANCELLED

    def test_a_session_that_ends_by_a_fault_is_not_charged(self, store: Store) -> None:
        lease = running(store, job("a"), "D0")
        store.apply("j-a", lifecycle.stop, State.FAILED, FAULT, now=150.0)
        store.apply_to_lease(lease.id, lifecycle.finish, now=151.0, charge_until=150.0)
        assert charges(store) == []


def test_events_of_the_service_are_stored_until_the_end(store: Store) -> None:
    store.submit(job("a"), 1.0)
    store.apply("j-a", lifecycle.record_event, "drain_warning", {"stops_at": 9.0}, now=2.0)
    store.apply("j-a", lifecycle.stop, State.CANCELLED, CANCELLED, now=3.0)
    store.apply("j-a", lifecycle.record_event, "drain_warning", {"stops_at": 10.0}, now=4.0)
    told = [event.data for event in store.events("j-a") if event.kind == "drain_warning"]
    assert told == [{"stops_at": 9.0}]


def test_requests_are_found_by_their_node(store: Store) -> None:
    running(store, job("a"), "D0")
    store.submit(job("b"), 200.0)
    found = [request.id for request in store.requests(RequestFilter(node="n1"))]
    assert found == ["j-a"]
    assert store.requests(RequestFilter(node="n2")) == ()
