"""The audit accepts what the store writes, and finds every kind of damage."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from carrel.hub.interfaces.store import Store
from carrel.hub.scheduling.model.states import State
from carrel.hub.store import open_store
from carrel.hub.transitions import lifecycle

from ..contracts.store_kit import CANCELLED, DEAD, DONE, furnish, granted, job, running
from .audit import audit, read, violations


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A few lives: done, given back and done, lost, waiting, and running on both devices."""
    with closing(open_store(tmp_path / "carrel.db")) as store:
        furnish(store)
        _lives(store)
    return tmp_path


def _lives(store: Store) -> None:
    done = running(store, job("done", devices=2), "D0", "D1", at=100.0)
    store.renew({done.id: 105.0}, until=135.0)
    store.charge([done.id], now=106.0)
    store.apply("j-done", lifecycle.stop, State.SUCCEEDED, DONE, now=110.0)
    store.apply_to_lease(done.id, lifecycle.finish, now=111.0, charge_until=110.5)

    back = granted(store, job("back"), "D0", at=120.0)
    store.launch(back.id, now=120.0)
    store.apply_to_lease(back.id, lifecycle.give_back, now=123.0, charge_until=120.0)
    again = running(store, job("back"), "D0", at=124.0)
    store.apply("j-back", lifecycle.stop, State.CANCELLED, CANCELLED, now=126.0)
    store.apply_to_lease(again.id, lifecycle.finish, now=127.0, charge_until=126.0)

    lost = running(store, job("lost"), "D1", at=130.0)
    store.apply_to_lease(lost.id, lifecycle.lose, DEAD, now=135.0, charge_until=134.0)

    one = running(store, job("one"), "D0", at=140.0)
    running(store, job("cpu", devices=0), at=140.0)
    store.renew({one.id: 150.0}, until=180.0)
    store.charge([one.id], now=150.0)
    granted(store, job("two"), "D1", at=141.0)
    store.submit(job("waits"), 142.0)


def test_what_the_store_writes_passes(state: Path) -> None:
    books = audit(state)
    assert [request.state for request in books.requests] == [
        State.SUCCEEDED,
        State.CANCELLED,
        State.FAILED,
        State.RUNNING,
        State.RUNNING,
        State.GRANTED,
        State.QUEUED,
    ]
    assert sum(entry.device_seconds for entry in books.entries) == 2 * 10.5 + 2 + 4 + 10


@pytest.mark.parametrize(
    ("what_happened", "found"),
    [
        pytest.param(
            "UPDATE leases SET released_at = 141.5 WHERE id = 'j-lost.1'",
            ["D1 is in j-lost.1 and j-two.1 at the same time"],
            id="a device granted before it was released",
        ),
        pytest.param(
            "UPDATE lease_devices SET device_id = 'D0' WHERE lease_id = 'j-two.1'",
            ["D0 is in j-one.1 and j-two.1 at the same time"],
            id="a device in two live leases",
        ),
        pytest.param(
            "UPDATE leases SET granted_at = 122 WHERE id = 'j-back.2';"
            "UPDATE ledger SET starts_at = 122, device_seconds = 4 WHERE lease_id = 'j-back.2'",
            [
                "D0 is in j-back.1 and j-back.2 at the same time",
                "j-back has two attempts at the same time: j-back.1 and j-back.2",
            ],
            id="two attempts at the same time",
        ),
        pytest.param(
            "UPDATE leases SET epoch = 3 WHERE id = 'j-back.2';"
            "UPDATE ledger SET epoch = 3 WHERE lease_id = 'j-back.2'",
            ["j-back is at attempt 2, its leases have [1, 3]"],
            id="an attempt that was left out",
        ),
        pytest.param(
            "UPDATE ledger SET starts_at = 106, device_seconds = 9"
            " WHERE lease_id = 'j-done.1' AND starts_at = 105",
            ["the ledger of j-done.1 has a gap at +1.000000 s"],
            id="an interval that was not charged",
        ),
        pytest.param(
            "UPDATE ledger SET starts_at = 104, device_seconds = 13"
            " WHERE lease_id = 'j-done.1' AND starts_at = 105",
            ["the ledger of j-done.1 has an overlap at -1.000000 s"],
            id="an interval charged twice",
        ),
        pytest.param(
            "DELETE FROM ledger WHERE lease_id = 'j-lost.1'",
            ["j-lost.1 is charged until 134.0, its ledger until 130.0"],
            id="a line that was lost",
        ),
        pytest.param(
            "UPDATE ledger SET device_seconds = 5 WHERE lease_id = 'j-lost.1'",
            ["an entry of j-lost.1 does not cost devices times length"],
            id="a wrong price",
        ),
        pytest.param(
            "UPDATE ledger SET owner = 'ben' WHERE lease_id = 'j-lost.1'",
            ["an entry of j-lost.1 is of another user"],
            id="another user pays",
        ),
        pytest.param(
            "UPDATE leases SET seen_at = 134.8 WHERE id = 'j-lost.1'",
            ["j-lost.1 lacks 0.800 s up to its last sign of life"],
            id="released with time that was not charged",
        ),
        pytest.param(
            "UPDATE leases SET released_at = 133 WHERE id = 'j-lost.1'",
            ["j-lost.1 is charged beyond its release"],
            id="charged after its release",
        ),
        pytest.param(
            "UPDATE leases SET state = 'live', released_at = NULL WHERE id = 'j-lost.1';"
            "UPDATE lease_devices SET device_id = 'D9' WHERE lease_id = 'j-lost.1'",
            ["j-lost is failed and still has j-lost.1"],
            id="a finished request that still holds a device",
        ),
        pytest.param(
            "UPDATE leases SET state = 'released', released_at = 150 WHERE id = 'j-one.1'",
            ["j-one is running without a live lease"],
            id="running on a device that was given away",
        ),
        pytest.param(
            "DELETE FROM lease_devices WHERE lease_id = 'j-one.1'",
            [
                "j-one.1 has 0 devices of 1",
                "j-one.1 has no devices and is charged",
                "an entry of j-one.1 is of another user",
            ],
            id="a lease whose devices are forgotten",
        ),
        pytest.param(
            """UPDATE events SET data = '{"state": "running"}' WHERE request_id = 'j-done'
            AND data LIKE '%stopping%'""",
            ["j-done went from running to running", "j-done went from running to succeeded"],
            id="a way that the table does not have",
        ),
        pytest.param(
            """INSERT INTO events (request_id, epoch, at, kind, data)
            VALUES ('j-done', 1, 200, 'state', '{"state": "queued"}')""",
            [
                "j-done went from succeeded to queued",
                "j-done is succeeded, its last event says queued",
            ],
            id="a finished request that is admitted again",
        ),
        pytest.param(
            "DELETE FROM events WHERE request_id = 'j-waits'",
            ["j-waits began as ()"],
            id="a request without a history",
        ),
    ],
)
def test_every_kind_of_damage_is_found(state: Path, what_happened: str, found: list[str]) -> None:
    with closing(sqlite3.connect(state / "carrel.db")) as database:
        _drop_guards(database)
        database.executescript(what_happened)
    assert sorted(violations(read(state))) == sorted(found)
    with pytest.raises(AssertionError, match=r"^\S"):
        audit(state)


def _drop_guards(database: sqlite3.Connection) -> None:
    """The database itself forbids most of this: take its unique indexes away."""
    for (name,) in database.execute(
        "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
    ).fetchall():
        database.execute(f'DROP INDEX "{name}"')
