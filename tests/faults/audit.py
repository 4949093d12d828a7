"""What must always hold (design, section 5), read off Carrel's database from outside.

``audit(state_folder)`` opens the SQLite file read-only, at any moment, beside a running service
or after it was killed, and raises with every rule that it finds broken. It shares no code with
the stores: it knows the tables, and the table of the lifecycle.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from carrel.hub.scheduling.model.states import HOLDS_DEVICES, TABLE, TERMINAL, State

_EDGES = frozenset((before, after) for (before, _), after in TABLE.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    id: str
    request: str
    epoch: int
    devices: tuple[str, ...]
    granted_at: float
    seen_at: float
    charged_until: float
    released_at: float | None
    ran: bool
    """A process was reported for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A line of the ledger."""

    lease: str
    request: str
    epoch: int
    owner: str
    group: str
    devices: int
    starts_at: float
    ends_at: float
    device_seconds: float
    credit: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    id: str
    owner: str
    group: str
    devices: int
    state: State
    epoch: int
    ended: bool
    path: tuple[State, ...]
    """The states of its ``state`` events, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """The database at one moment."""

    requests: tuple[Request, ...]
    leases: tuple[Lease, ...]
    entries: tuple[Entry, ...]

    def leases_of(self, request_id: str) -> list[Lease]:
        return [lease for lease in self.leases if lease.request == request_id]


def audit(state_folder: Path, *, precision: float = 0.0) -> Books:
    """Raise AssertionError with everything that is wrong; else return what was read.

    Args:
        precision: seconds by which an engine's clock may say of an attempt that it has ended
            before its last sign of life.
    """
    books = read(state_folder)
    found = violations(books, precision)
    assert not found, "\n".join(found)
    return books


def violations(books: Books, precision: float = 0.0) -> list[str]:
    """One sentence for each broken rule."""
    return [
        *_one_lease_per_device(books),
        *_one_attempt_per_request(books),
        *_lawful_paths(books),
        *_states_and_leases_agree(books),
        *_charged_once_and_fully(books, precision),
    ]


# -- the rules -----------------------------------------------------------------------------


def _one_lease_per_device(books: Books) -> Iterator[str]:
    """1: a device has at most one exclusive lease at a time."""
    by_device: dict[str, list[Lease]] = defaultdict(list)
    for lease in books.leases:
        for device in lease.devices:
            by_device[device].append(lease)
    for device, leases in sorted(by_device.items()):
        for first, second in _overlaps(leases):
            yield f"{device} is in {first.id} and {second.id} at the same time"


def _one_attempt_per_request(books: Books) -> Iterator[str]:
    """Attempts of a request are numbered from 1 and follow each other."""
    for request in books.requests:
        leases = books.leases_of(request.id)
        epochs = [lease.epoch for lease in leases]
        if epochs != list(range(1, request.epoch + 1)):
            yield f"{request.id} is at attempt {request.epoch}, its leases have {epochs}"
        for first, second in _overlaps(leases):
            yield f"{request.id} has two attempts at the same time: {first.id} and {second.id}"


def _overlaps(leases: Sequence[Lease]) -> Iterator[tuple[Lease, Lease]]:
    """Neighbours in time of which one begins before the other is released."""
    ordered = sorted(leases, key=lambda lease: (lease.granted_at, lease.epoch))
    for first, second in pairwise(ordered):
        if first.released_at is None or second.granted_at < first.released_at:
            yield first, second


def _lawful_paths(books: Books) -> Iterator[str]:
    """3: every request goes along the lifecycle's table, and never leaves a terminal state."""
    for request in books.requests:
        if request.path[:1] != (State.QUEUED,):
            yield f"{request.id} began as {request.path[:1]}"
        for before, after in pairwise(request.path):
            if (before, after) not in _EDGES:
                yield f"{request.id} went from {before} to {after}"
        if request.path and request.path[-1] != request.state:
            yield f"{request.id} is {request.state}, its last event says {request.path[-1]}"
        grants = request.path.count(State.GRANTED)
        if grants != request.epoch:
            yield f"{request.id} was granted {grants} times and is at attempt {request.epoch}"


def _states_and_leases_agree(books: Books) -> Iterator[str]:
    """5: devices are held from the grant to the confirmed end, and by no other lease."""
    for request in books.requests:
        live = [lease for lease in books.leases_of(request.id) if lease.released_at is None]
        if request.state in HOLDS_DEVICES and not live:
            yield f"{request.id} is {request.state} without a live lease"
        if request.state not in HOLDS_DEVICES and live:
            yield f"{request.id} is {request.state} and still has {live[0].id}"
        if request.ended != (request.state in TERMINAL):
            yield f"{request.id} is {request.state}, but its end says otherwise"
        if request.state is State.GRANTED and any(lease.ran for lease in live):
            yield f"{request.id} is only granted and has a process"
        for lease in books.leases_of(request.id):
            if len(lease.devices) != request.devices:
                yield f"{lease.id} has {len(lease.devices)} devices of {request.devices}"


def _charged_once_and_fully(books: Books, precision: float) -> Iterator[str]:
    """4: the ledger of a lease goes from its grant to its last sign of life without a gap."""
    lines: dict[str, list[Entry]] = defaultdict(list)
    for entry in books.entries:
        lines[entry.lease].append(entry)
    requests = {request.id: request for request in books.requests}
    for lease in books.leases:
        every = sorted(lines.pop(lease.id, []), key=lambda entry: entry.starts_at)
        entries = [entry for entry in every if not entry.credit]
        back = [entry for entry in every if entry.credit]
        yield from _one_ledger(lease, entries, precision, forgiven=bool(back))
        yield from _one_credit(lease, entries, back)
        for entry in entries:
            yield from _one_entry(entry, lease, requests[lease.request])
    for orphan in lines:
        yield f"the ledger charges {orphan}, which does not exist"


def _one_credit(lease: Lease, entries: Sequence[Entry], back: Sequence[Entry]) -> Iterator[str]:
    """What a failed device did to a lease is taken back, once and as a whole."""
    if len(back) > 1:
        yield f"{lease.id} has {len(back)} credits"
    charged = math.fsum(entry.device_seconds for entry in entries)
    if back and back[0].device_seconds != -charged:
        yield f"the credit of {lease.id} is not what it was charged"


def _one_ledger(
    lease: Lease, entries: Sequence[Entry], precision: float, *, forgiven: bool
) -> Iterator[str]:
    if lease.devices:
        upto = lease.granted_at
        for entry in entries:
            if entry.starts_at != upto:
                kind = "a gap" if entry.starts_at > upto else "an overlap"
                yield f"the ledger of {lease.id} has {kind} at {entry.starts_at - upto:+.6f} s"
            upto = entry.ends_at
        if upto != lease.charged_until:
            yield f"{lease.id} is charged until {lease.charged_until}, its ledger until {upto}"
    elif entries:
        yield f"{lease.id} has no devices and is charged"
    if lease.released_at is None:
        return
    if lease.charged_until > lease.released_at:
        yield f"{lease.id} is charged beyond its release"
    # Where nothing ever ran, what was granted and given back costs nothing.
    missing = min(lease.seen_at, lease.released_at) - lease.charged_until
    if lease.ran and not forgiven and missing > precision:
        yield f"{lease.id} lacks {missing:.3f} s up to its last sign of life"


def _one_entry(entry: Entry, lease: Lease, request: Request) -> Iterator[str]:
    if entry.device_seconds != entry.devices * (entry.ends_at - entry.starts_at):
        yield f"an entry of {lease.id} does not cost devices times length"
    if entry.ends_at <= entry.starts_at:
        yield f"an entry of {lease.id} has no length"
    wanted = (lease.request, lease.epoch, len(lease.devices), request.owner, request.group)
    if (entry.request, entry.epoch, entry.devices, entry.owner, entry.group) != wanted:
        yield f"an entry of {lease.id} is of another user"


# -- reading -------------------------------------------------------------------------------


def read(state_folder: Path) -> Books:
    """All of it in one read transaction; nothing is ever written."""
    uri = f"{(state_folder / 'carrel.db').resolve().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, timeout=20, isolation_level=None)) as database:
        database.row_factory = sqlite3.Row
        database.execute("BEGIN")
        return Books(
            requests=tuple(_requests(database)),
            leases=tuple(_leases(database)),
            entries=tuple(_entries(database)),
        )


def _requests(database: sqlite3.Connection) -> Iterator[Request]:
    paths: dict[str, list[State]] = defaultdict(list)
    for row in database.execute(
        "SELECT request_id, data FROM events WHERE kind = 'state' ORDER BY id"
    ):
        paths[row["request_id"]].append(State(json.loads(row["data"])["state"]))
    for row in database.execute("SELECT * FROM requests ORDER BY number"):
        yield Request(
            id=row["id"],
            owner=row["owner"],
            group=row["group_name"],
            devices=row["devices"],
            state=State(row["state"]),
            epoch=row["epoch"],
            ended=row["ended_at"] is not None,
            path=tuple(paths[row["id"]]),
        )


def _leases(database: sqlite3.Connection) -> Iterator[Lease]:
    devices: dict[str, list[str]] = defaultdict(list)
    for row in database.execute("SELECT * FROM lease_devices ORDER BY lease_id, position"):
        devices[row["lease_id"]].append(row["device_id"])
    query = (
        "SELECT leases.*, attempts.pid FROM leases"
        " LEFT JOIN attempts ON attempts.lease_id = leases.id ORDER BY request_id, epoch"
    )
    for row in database.execute(query):
        yield Lease(
            id=row["id"],
            request=row["request_id"],
            epoch=row["epoch"],
            devices=tuple(devices[row["id"]]),
            granted_at=row["granted_at"],
            seen_at=row["seen_at"],
            charged_until=row["charged_until"],
            released_at=row["released_at"],
            ran=row["pid"] is not None,
        )


def _entries(database: sqlite3.Connection) -> Iterator[Entry]:
    for row in database.execute("SELECT * FROM ledger ORDER BY id"):
        yield Entry(
            lease=row["lease_id"],
            request=row["request_id"],
            epoch=row["epoch"],
            owner=row["owner"],
            group=row["group_name"],
            devices=row["devices"],
            starts_at=row["starts_at"],
            ends_at=row["ends_at"],
            device_seconds=row["device_seconds"],
            credit=row["kind"] == "credit",
        )
