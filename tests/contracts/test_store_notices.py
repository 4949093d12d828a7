"""Contract of the store: preemption notices, their withdrawal, and the return to the queue."""

from __future__ import annotations

from dataclasses import replace

import pytest

from carrel.hub.interfaces.store import Store
from carrel.hub.records.notices import NoticeKind, StopNotice
from carrel.hub.records.requests import Cause, CauseCode
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.scheduling.model.states import State
from carrel.hub.transitions import lifecycle, preemption

from .store_kit import charges, granted, job, running, states

NOTICE = StopNotice(
    kind=NoticeKind.GUARANTEE,
    message="cs101 reclaims devices.",
    given_at=110,
    stops_at=230,
    group="cs101",
    for_request="j-z",
)
PREEMPTED = Cause(code=CauseCode.PREEMPTED, message="Stopped, as announced.")
DONE = Cause(code=CauseCode.SUCCEEDED, message="It ended.")


def kinds(store: Store) -> list[str]:
    return [event.kind for event in store.events("j-a") if event.kind != "state"]


def test_a_notice_is_stored_with_one_event(store: Store) -> None:
    running(store, job("a"), "D0")
    noticed = store.apply("j-a", preemption.notify, NOTICE, now=110)
    assert noticed.notice == NOTICE
    assert store.request("j-a") == noticed
    assert store.apply("j-a", preemption.notify, NOTICE, now=120) == noticed
    (event,) = store.events("j-a", kinds=frozenset({"notice"}))
    assert event.data == {
        "why": "guarantee",
        "message": "cs101 reclaims devices.",
        "stops_at": 230,
        "comes_back": True,
    }
    (held,) = store.snapshot(120).allocations
    assert (held.leaving, held.leaves_at) == (True, 230)


def test_requests_without_devices_get_no_notice(store: Store) -> None:
    store.submit(job("a"), 100)
    assert store.apply("j-a", preemption.notify, NOTICE, now=110).notice is None
    assert store.apply("j-a", preemption.preempt, PREEMPTED, NOTICE, now=110).state is State.QUEUED
    assert kinds(store) == []


def test_a_notice_is_withdrawn(store: Store) -> None:
    running(store, job("a"), "D0")
    store.apply("j-a", preemption.notify, NOTICE, now=110)
    assert store.apply("j-a", preemption.withdraw_notice, "j-z has ended.", now=120).notice is None
    assert store.apply("j-a", preemption.withdraw_notice, "j-z has ended.", now=121).notice is None
    assert kinds(store) == ["notice", "notice_over"]
    (held,) = store.snapshot(120).allocations
    assert (held.leaving, held.leaves_at) == (False, None)


def test_a_preempted_request_returns_to_its_place_and_is_charged_to_its_end(
    store: Store,
) -> None:
    lease = running(store, job("a"), "D0")
    store.submit(job("b"), 105)
    store.apply("j-a", preemption.notify, NOTICE, now=110)
    stopping = store.apply("j-a", preemption.preempt, PREEMPTED, NOTICE, now=230)
    assert (stopping.state, stopping.target) == (State.STOPPING, State.PREEMPTED)
    assert store.apply("j-a", preemption.preempt, PREEMPTED, NOTICE, now=231) == stopping
    back = store.apply_to_lease(lease.id, lifecycle.finish, now=234, charge_until=232)
    assert (back.state, back.notice, back.cause) == (State.QUEUED, None, None)
    assert states(store, back)[-3:] == ["stopping", "preempted", "queued"]
    told = [e.data for e in store.events("j-a") if e.data.get("state") == "preempted"]
    assert told[0]["cause"] == {"code": "preempted", "message": "Stopped, as announced."}
    assert charges(store) == [("j-a.1", 100, 232, 132)]
    assert [waiting.id for waiting in store.snapshot(240).pending] == ["j-a", "j-b"]
    again = Start(request_id="j-a", devices=("D0",))
    assert [lease.id for lease in store.grant([again], now=240, lease_seconds=30)] == ["j-a.2"]


def test_a_relocated_request_keeps_its_mark_until_the_next_grant(store: Store) -> None:
    lease = running(store, job("a"), "D0")
    (held,) = store.snapshot(105).allocations
    assert (held.image, held.nodes) == ("", None)
    moved = replace(NOTICE, kind=NoticeKind.MOVED)
    store.apply("j-a", preemption.notify, moved, now=110)
    store.apply("j-a", preemption.preempt, PREEMPTED, replace(moved, for_request="j-z"), now=230)
    store.apply_to_lease(lease.id, lifecycle.finish, now=234, charge_until=232)
    (waiting,) = store.snapshot(240).pending
    assert waiting.moved_for == "j-z"
    store.grant([Start(request_id="j-a", devices=("D0",))], now=240, lease_seconds=30)
    assert store.request("j-a").moved_for == ""
    store.apply("j-a", preemption.preempt, PREEMPTED, replace(moved, for_request="j-y"), now=250)
    (waiting,) = store.snapshot(260).pending
    assert waiting.moved_for == "j-y"


def test_a_preempted_request_keeps_its_mark_until_the_next_grant(
    store: Store,
) -> None:
    lease = running(store, job("a"), "D0")
    store.apply("j-a", preemption.preempt, PREEMPTED, replace(NOTICE, for_request="j-z"), now=230)
    store.apply_to_lease(lease.id, lifecycle.finish, now=234, charge_until=232)
    (waiting,) = store.snapshot(240).pending
    assert (waiting.stopped_for, waiting.moved_for) == ("j-z", "")
    store.grant([Start(request_id="j-a", devices=("D0",))], now=240, lease_seconds=30)
    assert store.request("j-a").stopped_for == ""


def test_a_preempted_grant_that_never_ran_is_not_charged(store: Store) -> None:
    granted(store, job("a"), "D0")
    back = store.apply("j-a", preemption.preempt, PREEMPTED, NOTICE, now=110)
    assert back.state is State.QUEUED
    assert charges(store) == []
    assert store.snapshot(110).allocations == ()


@pytest.mark.parametrize("late", [False, True])
def test_a_request_that_ends_during_its_notice_is_not_queued_again(
    store: Store, late: bool
) -> None:
    lease = running(store, job("a"), "D0")
    store.apply("j-a", preemption.notify, NOTICE, now=110)
    if late:
        store.apply("j-a", preemption.preempt, PREEMPTED, NOTICE, now=230)
    store.apply("j-a", lifecycle.stop, State.SUCCEEDED, DONE, now=231)
    if not late:
        assert (
            store.apply("j-a", preemption.preempt, PREEMPTED, NOTICE, now=232).target
            is State.SUCCEEDED
        )
    ended = store.apply_to_lease(lease.id, lifecycle.finish, now=233, charge_until=232)
    assert (ended.state, ended.cause, ended.notice) == (State.SUCCEEDED, DONE, None)


def test_a_lost_attempt_removes_its_notice(store: Store) -> None:
    lease = running(store, job("a"), "D0")
    store.apply("j-a", preemption.notify, NOTICE, now=110)
    gone = Cause(code=CauseCode.LOST, message="Gone.")
    back = store.apply_to_lease(
        lease.id, lifecycle.lose, gone, now=120, charge_until=120, requeue=True
    )
    assert (back.state, back.notice) == (State.QUEUED, None)
