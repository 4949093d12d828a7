"""Requests by a filter: SQL is made once for each form of one, rows are read once where they stay.

A page asks for several lists, and making the SQL of one costs more than asking it. So a form of a
filter, which is the names of what it says, is made into SQL the first time, and asked with other
values ever after. And most of what lists show has ended: nothing of that changes any more, so its
rows are read once in the life of a process.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Connection,
    Integer,
    Select,
    String,
    bindparam,
    cast,
    func,
    literal_column,
    or_,
    select,
)

from ...records.requests import RequestFilter, RequestRecord
from ...scheduling.model.snapshot import Kind
from ...scheduling.model.states import LIVE, TERMINAL
from .tables.core import LIVE_SESSION, labels, leases, requests
from .tables.owner_filter import of_whom, whom
from .tables.request_rows import MANY, REQUESTS, read_requests

_MOST_KNOWN = 10_000
_ESCAPE = "/"
_ALIVE, _ENDED = requests.c.ended_at.is_(None), requests.c.ended_at.is_not(None)


class RequestSearch:
    """Finds requests; one is kept by each store, with what it has read of those that ended."""

    def __init__(self, *, most: int = _MOST_KNOWN) -> None:
        # Never another value under a number: several threads may read.
        self._known: dict[int, RequestRecord] = {}
        self._most = most

    def __len__(self) -> int:
        return len(self._known)

    def find(self, connection: Connection, which: RequestFilter) -> tuple[RequestRecord, ...]:
        """Newest first."""
        values = _values(which)
        if "alive" in values:
            return read_requests(connection, _query(tuple(values)), values)
        rows = connection.execute(_numbers(tuple(values)), values).all()
        kept = self._known  # another thread may begin a new one
        known = {number: kept[number] for number, ended in rows if ended and number in kept}
        new = [number for number, _ in rows if number not in known]
        for first in range(0, len(new), MANY):
            some = new[first : first + MANY]  # in the order in which they are read
            found = read_requests(connection, _OF_NUMBERS, {"numbers": some})
            known |= zip(some, found, strict=True)
        if new:
            self._keep({number: known[number] for number, ended in rows if ended})
        return tuple(known[number] for number, _ in rows)

    def _keep(self, ended: Mapping[int, RequestRecord]) -> None:
        if len(self._known.keys() | ended.keys()) > self._most:
            self._known = {}
        if len(ended) <= self._most:
            self._known.update(ended)


_OF_NUMBERS = REQUESTS.where(requests.c.number.in_(bindparam("numbers", expanding=True))).order_by(
    requests.c.number.desc()
)


@lru_cache(maxsize=500)
def _query(names: tuple[str, ...]) -> Select[*tuple[object, ...]]:
    """Everything of those that a filter of this form finds."""
    return REQUESTS.where(*_conditions(names)).order_by(_NEWEST_FIRST).limit(_MOST)


@lru_cache(maxsize=500)
def _numbers(names: tuple[str, ...]) -> Select[int, bool]:
    """Which ones it finds, and whether they have ended."""
    query = select(requests.c.number, _ENDED)
    if "node" in names:
        newest = (leases.c.request_id == requests.c.id) & (leases.c.epoch == requests.c.epoch)
        query = query.join_from(requests, leases, newest)
    return query.where(*_conditions(names)).order_by(_NEWEST_FIRST).limit(_MOST)


_NEWEST_FIRST = requests.c.number.desc()
_MOST = bindparam("most", type_=Integer)


def _conditions(names: tuple[str, ...]) -> list[ColumnElement[bool]]:
    conditions = of_whom(dict.fromkeys(names), requests)
    conditions += [_SAID[name] for name in names if name in _SAID]
    return conditions + [_labelled(name) for name in names if name.startswith(_LABEL)]


def _values(which: RequestFilter) -> dict[str, object]:
    """What it says, by the names of the conditions, in whose order they are asked."""
    values = whom(which)
    if which.node is not None:
        values["node"] = which.node
    if which.ids is not None:
        values["ids"] = sorted(which.ids)
    if which.before is not None:
        values["before"] = which.before
    for number, (name, value) in enumerate(which.labels.items()):
        values |= {f"{_LABEL}{number}": name, f"value{number}": value}
    if which.text is not None:
        values["text"] = f"%{_escaped(which.text.lower())}%"
    if which.server_name is not None:
        values["server_name"] = which.server_name
    values |= _kind_and_states(which)
    values["most"] = max(0, which.limit)
    return values


def _kind_and_states(which: RequestFilter) -> dict[str, object]:
    values = dict[str, object]()
    alive = which.states is not None and not which.states & TERMINAL
    if which.kind is Kind.SESSION and alive:
        values["live session"] = True
    elif which.kind is not None:
        values["kind"] = str(which.kind)
    if which.states == TERMINAL:
        values["ended"] = True
    elif which.states is not None:
        several = sorted(map(str, which.states))
        # Of a single value an index gives the order, too.
        if len(several) == 1:
            values["state"] = several[0]
        elif which.states == LIVE:
            values["live"] = True
        else:
            values["states"] = several
        if alive:
            values["alive"] = True
    return values


def _escaped(text: str) -> str:
    for special in (_ESCAPE, "%", "_"):
        text = text.replace(special, _ESCAPE + special)
    return text


_LABEL = "label"


def _labelled(name: str) -> ColumnElement[bool]:
    value = name.replace(_LABEL, "value")
    labelled = select(labels.c.number).where(
        labels.c.name == bindparam(name, type_=String),
        labels.c.value == bindparam(value, type_=String),
    )
    return requests.c.number.in_(labelled)


def _says() -> ColumnElement[bool]:
    """What has no index is looked for last, in what the other conditions have left."""
    words = (
        requests.c.id,
        requests.c.server_name,
        requests.c.job["notebook_name"].as_string(),
        cast(requests.c.job["command"], String),
    )
    text = bindparam("text", type_=String)
    return or_(*(func.lower(word).like(text, escape=_ESCAPE) for word in words))


_SAID: Mapping[str, ColumnElement[bool]] = {
    "node": leases.c.node == bindparam("node"),
    "ids": requests.c.id.in_(bindparam("ids", expanding=True)),
    "before": requests.c.number
    < select(requests.c.number).where(requests.c.id == bindparam("before")).scalar_subquery(),
    "text": _says(),
    "server_name": requests.c.server_name == bindparam("server_name"),
    "live session": literal_column(str(LIVE_SESSION), Boolean),  # opens the index of these
    "kind": requests.c.kind == bindparam("kind"),
    "ended": _ENDED,
    "state": requests.c.state == bindparam("state"),
    "states": requests.c.state.in_(bindparam("states", expanding=True)),
    # Written out: the index begins with the state.
    "live": requests.c.state.in_([literal_column(f"'{state}'", String) for state in sorted(LIVE)]),
    "alive": _ALIVE,  # opens the index of these
}
"""Those that do not depend on a number, each with the names of its values."""
