"""Contract of the store: image pins of groups, and images that are in use."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from carrel.hub.errors import NotFound
from carrel.hub.interfaces.store import Store
from carrel.hub.records.audit import AuditAction, AuditEntry, ChangeFilter
from carrel.hub.records.images import ImageUse, Pin
from carrel.hub.scheduling.model.snapshot import Group
from carrel.hub.scheduling.model.states import State
from carrel.hub.transitions import lifecycle

from .store_kit import CANCELLED, furnish, job, session

OLD = "sha256:" + "a" * 64
NEW = "sha256:" + "b" * 64
PIN = Pin(group="lab", image="torch", digest=OLD, until=date(2027, 2, 15), set_by="tea", set_at=5.0)


def change(action: AuditAction) -> AuditEntry:
    return AuditEntry(at=1.0, who="tea", action=action, target="lab")


def test_pins_are_stored_replaced_removed_and_audited(store: Store) -> None:
    store.put_group(Group(name="lab", max_devices=2, max_devices_per_user=1))
    store.put_pin(PIN, change=change(AuditAction.PIN))
    assert store.pins() == (PIN,)
    later, other = replace(PIN, digest=NEW, until=None), replace(PIN, image="base")
    store.put_pin(later)
    store.put_pin(other)
    assert store.pins() == (other, later)
    assert store.remove_pin("lab", "torch", change=change(AuditAction.UNPIN))
    assert not store.remove_pin("lab", "torch", change=change(AuditAction.UNPIN))
    assert store.pins() == (other,)
    lines = [line.action for line in store.changes(ChangeFilter(target="lab"))]
    assert lines == [AuditAction.UNPIN, AuditAction.PIN]


def test_a_pin_of_an_unknown_group_is_refused(store: Store) -> None:
    with pytest.raises(NotFound):
        store.put_pin(replace(PIN, group="cs999"))
    assert store.pins() == ()


def test_pins_are_removed_with_their_group(store: Store) -> None:
    store.put_group(Group(name="lab", max_devices=2, max_devices_per_user=1))
    store.put_pin(PIN)
    store.remove_group("lab", at=7.0)
    assert store.pins() == ()


def test_a_pin_holds_until_the_end_of_its_last_day() -> None:
    def at(text: str) -> float:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()

    assert PIN.holds(at("2027-02-15 23:59:59"))
    assert not PIN.holds(at("2027-02-16 00:00:00"))
    assert replace(PIN, until=None).holds(at("2099-01-01"))


def test_a_request_is_stored_with_its_image(store: Store) -> None:
    furnish(store)
    made = store.submit(replace(job("one"), image=f"torch@{OLD}"), 1.0)
    assert made.image == f"torch@{OLD}"
    assert store.request("j-one").image == f"torch@{OLD}"
    assert store.submit(job("two"), 2.0).image == ""


def test_jobs_and_unfinished_sessions_need_their_image(store: Store) -> None:
    furnish(store)
    for number, name in enumerate(("one", "two")):
        store.submit(replace(job(name), image=f"torch@{OLD}"), float(number))
    store.submit(replace(session("s", server="a"), image=f"base@{NEW}"), 3.0)
    store.submit(replace(session("t", server="b"), image=f"base@{OLD}"), 4.0)
    store.submit(job("without"), 5.0)
    store.apply("j-one", lifecycle.stop, State.CANCELLED, CANCELLED, now=6.0)
    store.apply("s-t", lifecycle.stop, State.CANCELLED, CANCELLED, now=6.0)
    assert dict(store.image_uses()) == {
        f"torch@{OLD}": (
            ImageUse(request_id="j-two", ended=False),
            ImageUse(request_id="j-one", ended=True),
        ),
        f"base@{NEW}": (ImageUse(request_id="s-s", ended=False),),
    }
