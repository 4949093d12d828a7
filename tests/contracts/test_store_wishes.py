"""Contract of the store: what owners change about their live requests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from carrel.hub.errors import Conflict, NotFound
from carrel.hub.interfaces.store import Store
from carrel.hub.records.requests import Cause, CauseCode, NewRequest, RequestChange, RequestRecord
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.scheduling.model.snapshot import Group
from carrel.hub.scheduling.model.states import State
from carrel.hub.transitions import lifecycle, owner_changes

from .store_kit import CANCELLED, charges, granted, job, running, session, states

UNCLAIMED = Cause(code=CauseCode.UNCLAIMED, message="The session was not claimed.")


def held(name: str = "a", server: str = "gpu") -> NewRequest:
    return replace(session(name, server=server), claim=True)


def kinds(store: Store, request_id: str) -> list[str]:
    return [event.kind for event in store.events(request_id) if event.kind != "state"]


class TestKeepPlace:
    def test_a_queued_session_is_renamed_and_keeps_its_place(self, store: Store) -> None:
        before = store.submit(session("a"), 100)
        kept = store.keep_place("s-a", "gpu", now=105)
        assert kept == replace(before, server_name="gpu", claim=True)
        assert kept == store.request("s-a") == store.live_session("ada", "gpu")
        assert store.live_session("ada", "") is None
        assert store.snapshot(200).pending[0].submitted_at == 100
        assert kinds(store, "s-a") == ["kept"]
        assert states(store, "s-a") == ["queued"]

    def test_the_cpu_desk_is_stored_in_the_same_transaction(self, store: Store) -> None:
        store.submit(session("a"), 100)
        desk = replace(session("desk"), devices=0)
        store.keep_place("s-a", "gpu", now=105, desk=desk)
        assert live(store, "").id == "s-desk"

    def test_a_refused_cpu_desk_changes_nothing(self, store: Store) -> None:
        store.submit(session("a"), 100)
        desk = replace(session("desk"), devices=0, group="nowhere")
        with pytest.raises(NotFound):
            store.keep_place("s-a", "gpu", now=105, desk=desk)
        assert not store.request("s-a").claim
        assert kinds(store, "s-a") == []

    def test_keeping_the_place_again_keeps_the_name(self, store: Store) -> None:
        store.submit(session("a"), 100)
        first = store.keep_place("s-a", "gpu", now=105)
        assert store.keep_place("s-a", "gpu-2", now=106) == first
        assert kinds(store, "s-a") == ["kept"]

    def test_a_granted_session_is_held(self, store: Store) -> None:
        lease = granted(store, session("a"), "D0")
        store.keep_place("s-a", "gpu", now=101)
        with pytest.raises(Conflict, match="is held for its owner"):
            store.launch(lease.id, now=102)
        assert store.request("s-a").state is State.GRANTED

    def test_a_name_that_another_session_has_is_refused(self, store: Store) -> None:
        store.submit(session("a"), 100)
        store.submit(session("b", server="gpu"), 101)
        with pytest.raises(Conflict, match="'gpu' of ada is queued already"):
            store.keep_place("s-a", "gpu", now=102)
        assert store.keep_place("s-a", "gpu-2", now=103).server_name == "gpu-2"

    def test_only_sessions_that_wait_for_devices_keep_a_place(self, store: Store) -> None:
        running(store, session("a"), "D0")
        store.submit(job("b"), 100)
        store.submit(replace(session("c", server="cpu"), devices=0), 100)
        for name in ("s-a", "j-b", "s-c"):
            with pytest.raises(Conflict) as refused:
                store.keep_place(name, "gpu", now=101)
            assert refused.value.accepted == "Choose a session that is queued for devices."


class TestClaim:
    def test_a_held_lease_starts_once_it_is_claimed(self, store: Store) -> None:
        lease = granted(store, held(), "D0")
        with pytest.raises(Conflict, match="Claim it first"):
            store.launch(lease.id, now=101)
        claimed = store.apply("s-a", owner_changes.claim, now=105)
        assert (claimed.claim, claimed.claimed_at, claimed.unclaimed) == (True, 105, False)
        assert claimed == store.request("s-a")
        assert store.apply("s-a", owner_changes.claim, now=107) == claimed
        assert store.launch(lease.id, now=108).state is State.STARTING
        assert store.apply("s-a", owner_changes.claim, now=109).state is State.STARTING
        assert kinds(store, "s-a") == ["claimed"]

    def test_there_is_nothing_to_claim_before_the_grant_nor_after_the_end(
        self, store: Store
    ) -> None:
        store.submit(held(), 100)
        with pytest.raises(Conflict, match="is still queued"):
            store.apply("s-a", owner_changes.claim, now=101)
        store.apply("s-a", lifecycle.stop, State.CANCELLED, CANCELLED, now=102)
        with pytest.raises(Conflict, match=r"it is cancelled\. Cancelled by ada\."):
            store.apply("s-a", owner_changes.claim, now=103)

    def test_a_session_that_starts_by_itself_cannot_be_claimed(self, store: Store) -> None:
        granted(store, session("a"), "D0")
        with pytest.raises(Conflict, match="starts automatically"):
            store.apply("s-a", owner_changes.claim, now=101)

    def test_an_unclaimed_lease_ends_and_is_charged_for_the_window(self, store: Store) -> None:
        lease = granted(store, held(), "D0")
        ended = store.apply(
            "s-a", owner_changes.cancel_unclaimed, UNCLAIMED, now=130, charge_until=110
        )
        assert (ended.state, ended.cause, ended.ended_at) == (State.CANCELLED, UNCLAIMED, 130)
        assert charges(store) == [(lease.id, 100, 110, 10)]
        assert store.leases() == ()
        assert (
            store.apply("s-a", owner_changes.cancel_unclaimed, UNCLAIMED, now=140, charge_until=140)
            == ended
        )

    def test_a_claim_just_in_time_keeps_the_lease(self, store: Store) -> None:
        granted(store, held(), "D0")
        claimed = store.apply("s-a", owner_changes.claim, now=109.9)
        assert (
            store.apply("s-a", owner_changes.cancel_unclaimed, UNCLAIMED, now=110, charge_until=110)
            == claimed
        )

    def test_a_claimed_session_that_is_queued_again_starts_by_itself(self, store: Store) -> None:
        lease = granted(store, held(), "D0")
        store.apply("s-a", owner_changes.claim, now=101)
        store.launch(lease.id, now=102)
        store.apply_to_lease(lease.id, lifecycle.give_back, now=103, charge_until=100)
        (again,) = store.grant(
            [Start(request_id="s-a", devices=("D1",))], now=104, lease_seconds=30
        )
        assert store.launch(again.id, now=105).state is State.STARTING


class TestExtend:
    def test_an_extension_adds_to_the_time_limit_with_an_event(self, store: Store) -> None:
        running(store, session("a"), "D0")
        assert store.apply("s-a", owner_changes.extend, 1800, by="ada", now=200).seconds == 5400
        assert store.apply("s-a", owner_changes.extend, 60, by="tom", now=201) == store.request(
            "s-a"
        )
        assert [e.data for e in store.events("s-a") if e.kind == "extended"] == [
            {"seconds": 5400, "added": 1800, "by": "ada"},
            {"seconds": 5460, "added": 60, "by": "tom"},
        ]
        assert store.allocations()[0].until == 100 + 5460

    def test_an_extension_of_an_outdated_time_limit_is_not_repeated(self, store: Store) -> None:
        running(store, session("a"), "D0")
        for _ in range(2):
            assert (
                store.apply("s-a", owner_changes.extend, 1800, seen=3600, by="ada", now=200).seconds
                == 5400
            )
        assert (
            store.apply("s-a", owner_changes.extend, 60, seen=3600, by="tom", now=201).seconds
            == 5400
        )
        assert (
            store.apply("s-a", owner_changes.extend, 2400, seen=3600, by="tom", now=202).seconds
            == 6000
        )
        assert [e.data for e in store.events("s-a") if e.kind == "extended"] == [
            {"seconds": 5400, "added": 1800, "by": "ada"},
            {"seconds": 6000, "added": 600, "by": "tom"},
        ]

    def test_only_running_requests_are_extended(self, store: Store) -> None:
        store.submit(job("a"), 100)
        with pytest.raises(Conflict, match="it is queued"):
            store.apply("j-a", owner_changes.extend, 60, by="ada", now=101)
        store.apply("j-a", lifecycle.stop, State.CANCELLED, CANCELLED, now=102)
        with pytest.raises(Conflict, match="it is cancelled"):
            store.apply("j-a", owner_changes.extend, 60, by="ada", now=103)


class TestChange:
    def test_a_request_for_less_keeps_its_place(self, store: Store) -> None:
        store.submit(replace(job("a", devices=4), expected=500.0), 100)
        store.submit(job("b"), 101)
        before = store.snapshot(102).pending
        changed = store.apply(
            "j-a", owner_changes.amend, RequestChange(devices=1, seconds=300), now=103
        )
        assert changed == store.request("j-a")
        assert (changed.devices, changed.seconds, changed.expected) == (1, 300, 300)
        one, other = store.snapshot(104).pending
        assert one == replace(before[0], devices=1, seconds=300, expected=300)
        assert other == before[1]
        assert kinds(store, "j-a") == ["changed"]
        # Repeatedly, also if only the change itself is new.
        store.apply("j-a", owner_changes.amend, RequestChange(seconds=60), now=105)
        assert [each.seconds for each in store.snapshot(106).pending] == [60, 600]

    def test_a_request_moved_to_another_group_keeps_its_age(self, store: Store) -> None:
        store.put_group(Group(name="math", max_devices=1, max_devices_per_user=1))
        store.submit(job("a"), 100)
        store.apply("j-a", owner_changes.amend, RequestChange(group="math"), now=103)
        assert [(w.group, w.submitted_at) for w in store.snapshot(104).pending] == [("math", 100)]

    def test_the_model_is_removed_or_replaced(self, store: Store) -> None:
        store.submit(replace(job("a"), model="H100"), 100)
        for wanted, model in (("", None), ("H200", "H200")):
            changed = store.apply("j-a", owner_changes.amend, RequestChange(model=wanted), now=103)
            assert changed == store.request("j-a")
            assert (
                [each.model for each in store.snapshot(104).pending] == [changed.model] == [model]
            )
        assert (
            store.apply("j-a", owner_changes.amend, RequestChange(seconds=60), now=105).model
            == "H200"
        )
        told = [e.data["model"] for e in store.events("j-a") if e.kind == "changed"]
        assert told == [None, "H200", "H200"]

    def test_a_start_planned_for_another_model_is_skipped(self, store: Store) -> None:
        store.submit(job("a"), 100)
        store.apply("j-a", owner_changes.amend, RequestChange(model="H200"), now=101)
        planned = [Start(request_id="j-a", devices=("D0",))]
        assert store.grant(planned, now=102, lease_seconds=30) == ()
        store.apply("j-a", owner_changes.amend, RequestChange(model="H100"), now=103)
        assert len(store.grant(planned, now=104, lease_seconds=30)) == 1

    def test_a_repeated_change_has_no_effect(self, store: Store) -> None:
        store.submit(job("a", devices=2), 100)
        first = store.apply("j-a", owner_changes.amend, RequestChange(devices=1), now=103)
        assert store.apply("j-a", owner_changes.amend, RequestChange(devices=1), now=104) == first
        assert kinds(store, "j-a") == ["changed"]

    def test_changes_to_more_or_of_requests_that_are_not_queued_are_refused(
        self, store: Store
    ) -> None:
        store.submit(job("a"), 100)
        for wanted in (RequestChange(devices=2), RequestChange(seconds=601)):
            with pytest.raises(Conflict, match="can only be reduced"):
                store.apply("j-a", owner_changes.amend, wanted, now=101)
        running(store, session("b"), "D0")
        with pytest.raises(Conflict, match="it is running"):
            store.apply("s-b", owner_changes.amend, RequestChange(seconds=60), now=102)

    def test_the_grant_has_the_changed_resources(self, store: Store) -> None:
        store.submit(job("a", devices=2), 100)
        store.snapshot(101)
        store.apply("j-a", owner_changes.amend, RequestChange(devices=1), now=102)
        two = [Start(request_id="j-a", devices=("D0", "D1"))]
        assert store.grant(two, now=103, lease_seconds=30) == ()
        one = [Start(request_id="j-a", devices=("D0",))]
        assert len(store.grant(one, now=103, lease_seconds=30)) == 1


def live(store: Store, server: str) -> RequestRecord:
    found = store.live_session("ada", server)
    assert found is not None
    return found
