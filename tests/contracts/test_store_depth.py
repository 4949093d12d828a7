"""Contract of the store: labels, pages, retries, and long queues that are read in part."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from carrel.hub.interfaces.store import Store
from carrel.hub.records.requests import RequestFilter
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.scheduling.model.states import State
from carrel.hub.store import open_store
from carrel.hub.transitions import lifecycle

from .store_kit import DEAD, furnish, granted, job, running, states


def ids(store: Store, which: RequestFilter) -> list[str]:
    return [request.id for request in store.requests(which)]


def test_filters_by_label_reader_ids_and_cursor(store: Store) -> None:
    for number, owner in enumerate(["ada", "bob", "ada", "bob"]):
        labels = {"sweep": str(number % 2), "all": "x"}
        store.submit(replace(job(str(number), owner=owner), labels=labels), 100.0)
    assert ids(store, RequestFilter(labels={"sweep": "1", "all": "x"})) == ["j-3", "j-1"]
    assert ids(store, RequestFilter(labels={"sweep": "x"})) == []
    assert ids(store, RequestFilter(before="j-2")) == ["j-1", "j-0"]
    assert ids(store, RequestFilter(before="j-9")) == []
    assert ids(store, RequestFilter(ids=frozenset({"j-0", "j-3", "no"}))) == ["j-3", "j-0"]
    assert ids(store, RequestFilter(reader="ada")) == ["j-2", "j-0"]
    everybody = RequestFilter(reader="ada", reader_groups=frozenset({"lab"}), limit=3)
    assert ids(store, everybody) == ["j-3", "j-2", "j-1"]
    assert ids(store, replace(everybody, owner="bob")) == ["j-3", "j-1"]


def test_a_lost_attempt_goes_back_to_the_queue(store: Store) -> None:
    first = running(store, job("a"), "D0")
    again = store.apply_to_lease(
        first.id, lifecycle.lose, DEAD, now=130, charge_until=120, requeue=True
    )
    assert (again.state, again.cause, again.ended_at) == (State.QUEUED, None, None)
    assert states(store, "j-a")[-2:] == ["lost", "queued"]
    told = [e.data for e in store.events("j-a") if e.data.get("state") == "lost"]
    assert told[0]["cause"] == {
        "code": "lost",
        "message": DEAD.message,
        "class": "infrastructure",
    }
    assert store.charged(["j-a"])["j-a"] == 20
    second = granted(store, job("a"), "D0", at=140)
    assert (second.epoch, store.allocations()[0].devices) == (2, ("D0",))
    assert (
        store.apply_to_lease(first.id, lifecycle.lose, DEAD, now=150, charge_until=150).state
        is State.GRANTED
    )


def test_the_queue_shows_a_back_off_and_an_expedited_request(store: Store) -> None:
    first = running(store, job("a"), "D0")
    store.snapshot(100)
    store.apply_to_lease(
        first.id, lifecycle.lose, DEAD, now=130, charge_until=120, requeue=True, not_before=140.0
    )
    (waiting,) = store.snapshot(130).pending
    assert (waiting.expedited, waiting.not_before) == (True, 140.0)
    (lease,) = store.grant([Start(request_id="j-a", devices=("D0",))], now=141, lease_seconds=30)
    store.apply_to_lease(lease.id, lifecycle.give_back, now=142, charge_until=141, not_before=150.0)
    (waiting,) = store.snapshot(142).pending
    assert (waiting.expedited, waiting.not_before) == (False, 150.0)


def test_events_by_kind_and_the_number_of_queued_requests(store: Store) -> None:
    running(store, job("a"), "D0")
    assert store.events("j-a", kinds=frozenset({"cells"})) == ()
    assert len(store.events("j-a", kinds=frozenset({"state"}))) == 4
    store.submit(job("b"), 100.0)
    store.submit(job("c", devices=0), 100.0)
    store.submit(job("d", owner="bob"), 100.0)
    assert store.waiting_for_devices() == 2
    assert store.queued("ada") == {"j-b", "j-c"}
    assert store.queued("eve") == frozenset()


def test_the_snapshot_follows_changes_of_the_queue(store: Store) -> None:
    def waiting() -> list[str]:
        return [request.id for request in store.snapshot(200).pending]

    assert waiting() == []
    for name in ("a", "b", "c"):
        store.submit(job(name), 100.0)
    assert waiting() == ["j-a", "j-b", "j-c"]
    lease = granted(store, job("b"), "D0")
    store.submit(job("d", devices=0), 90.0)
    assert waiting() == ["j-a", "j-c", "j-d"]
    store.apply_to_lease(lease.id, lifecycle.give_back, now=130, charge_until=120)
    assert waiting() == ["j-a", "j-b", "j-c", "j-d"]
    of_d = store.snapshot(200).pending[3]
    assert (of_d.owner, of_d.devices, of_d.submitted_at) == ("ada", 0, 90.0)


def test_a_store_that_another_one_writes_to_sees_its_queue(tmp_path: Path) -> None:
    mine, other = open_store(tmp_path / "c.db"), open_store(tmp_path / "c.db")
    furnish(mine)
    mine.submit(job("a"), 100.0)
    assert len(mine.snapshot(200).pending) == 1
    other.submit(job("b"), 100.0)
    other.apply("j-a", lifecycle.stop, State.CANCELLED, DEAD, now=110.0)
    assert [request.id for request in mine.snapshot(200).pending] == ["j-b"]
    mine.close()
    other.close()


def test_the_change_feed_has_new_events_and_their_readers(store: Store) -> None:
    store.set_teachers("lab", ["tina", "tom"])
    store.submit(job("a"), 100.0)
    first = store.change_digest(None)
    assert (first.touched, first.waiting, first.allocations) == ((), 1, ())
    assert first.taught == {"tina": frozenset({"lab"}), "tom": frozenset({"lab"})}
    assert first.last == store.events("j-a")[-1].id
    assert store.change_digest(first.last).touched == ()

    store.submit(job("b", owner="bob"), 100.0)
    lease = running(store, job("a"), "D0")
    store.suspect([lease.id])
    second = store.change_digest(first.last)
    assert [(each.request_id, each.owner, each.group) for each in second.touched] == [
        ("j-b", "bob", "lab"),
        ("j-a", "ada", "lab"),
    ]
    assert [each.event_id for each in second.touched] == [
        store.events(name)[-1].id for name in ("j-b", "j-a")
    ]
    assert (second.last, second.suspect) == (store.events("j-a")[-1].id, {"j-a"})
    assert (second.devices, second.allocations) == (store.devices(), store.allocations())
