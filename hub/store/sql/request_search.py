"""Find requests by a filter, with caches for compiled queries and for requests that have ended.

Compiling the SQL of a list costs more than running it, and a page shows several lists. A query is
therefore built once for each set of conditions, and run with the values of the filter. Most
requests in a list have ended and never change again: their rows are read once per process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Connection,
    Double,
    FromClause,
    Integer,
    Select,
    String,
    bindparam,
    cast,
    false,
    func,
    literal_column,
    or_,
    select,
)

from ...records.requests import RequestFilter, RequestOrder, RequestRecord
from ...scheduling.model.snapshot import UNTIL_RELEASED, Kind
from ...scheduling.model.states import LIVE, TERMINAL
from .tables.core import (
    CHANGED,
    LIVE_SESSION,
    labels,
    leases,
    program_jobs,
    programs,
    requests,
)
from .tables.owner_filter import owner_conditions, owner_values
from .tables.request_rows import BATCH, REQUESTS, read_requests

_CACHE_SIZE = 10_000
_ESCAPE = "/"
_ALIVE, _ENDED = requests.c.ended_at.is_(None), requests.c.ended_at.is_not(None)


class RequestSearch:
    """Finds requests, and caches those that have ended; a store has one instance.

    Args:
        most: the most requests in the cache.
    """

    def __init__(self, *, most: int = _CACHE_SIZE) -> None:
        # An entry is never replaced: several threads may read.
        self._known: dict[int, RequestRecord] = {}
        self._most = most

    def __len__(self) -> int:
        return len(self._known)

    def find(self, connection: Connection, which: RequestFilter) -> tuple[RequestRecord, ...]:
        """Return the requests that match, in the order of the filter."""
        values = _values(which)
        if "alive" in values:
            return read_requests(connection, _query(tuple(values)), values)
        rows = connection.execute(_numbers(tuple(values)), values).all()
        cache = self._known  # another thread may replace the attribute
        known = {number: cache[number] for number, ended in rows if ended and number in cache}
        new = [number for number, _ in rows if number not in known]
        for first in range(0, len(new), BATCH):
            batch = sorted(new[first : first + BATCH], reverse=True)  # as the query returns them
            records = read_requests(connection, _BY_NUMBER, {"numbers": batch})
            known |= zip(batch, records, strict=True)
        if new:
            self._cache({number: known[number] for number, ended in rows if ended})
        return tuple(known[number] for number, _ in rows)

    def _cache(self, ended: Mapping[int, RequestRecord]) -> None:
        if len(self._known.keys() | ended.keys()) > self._most:
            self._known = {}
        if len(ended) <= self._most:
            self._known.update(ended)


_BY_NUMBER = REQUESTS.where(requests.c.number.in_(bindparam("numbers", expanding=True))).order_by(
    requests.c.number.desc()
)


@lru_cache(maxsize=500)
def _query(names: tuple[str, ...]) -> Select[*tuple[object, ...]]:
    """Return the query for whole requests with these conditions."""
    return REQUESTS.where(*_conditions(names)).order_by(*_order(names)).limit(_MOST)


@lru_cache(maxsize=500)
def _numbers(names: tuple[str, ...]) -> Select[int, bool]:
    """Return the query for the numbers of requests with these conditions, and their end flag."""
    query = select(requests.c.number, _ENDED)
    if "node" in names:
        newest = (leases.c.request_id == requests.c.id) & (leases.c.epoch == requests.c.epoch)
        query = query.join_from(requests, leases, newest)
    return query.where(*_conditions(names)).order_by(*_order(names)).limit(_MOST)


def _key(order: RequestOrder, row: FromClause) -> ColumnElement[Any]:
    """Return what a list in this order is sorted by."""
    match order:
        case RequestOrder.LONGEST | RequestOrder.SHORTEST:
            until = func.coalesce(row.c.ended_at, bindparam("now", type_=Double))
            return func.coalesce(until - row.c.started_at, -1.0)
        case RequestOrder.MOST_DEVICES | RequestOrder.FEWEST_DEVICES:
            return row.c.devices
    return row.c.number


def _order_of(names: Iterable[str]) -> RequestOrder:
    found = (name.removeprefix(_ORDER) for name in names if name.startswith(_ORDER))
    return RequestOrder(next(found, RequestOrder.NEWEST))


def _order(names: tuple[str, ...]) -> list[ColumnElement[Any]]:
    order = _order_of(names)
    key = _key(order, requests)
    first = key.asc() if order in _ASCENDING else key.desc()
    return [first] if key is requests.c.number else [first, requests.c.number.desc()]


def _before(names: tuple[str, ...]) -> ColumnElement[bool]:
    """Return the condition for requests after the last one of the previous page."""
    order = _order_of(names)
    last = requests.alias("last")
    found = last.c.id == bindparam("before")
    key = _key(order, requests)
    last_key = select(_key(order, last)).where(found).scalar_subquery()
    follows = key > last_key if order in _ASCENDING else key < last_key
    if key is requests.c.number:
        return follows
    number = select(last.c.number).where(found).scalar_subquery()
    return follows | ((key == last_key) & (requests.c.number < number))


_ORDER = "order "
_ASCENDING = frozenset({RequestOrder.OLDEST, RequestOrder.SHORTEST, RequestOrder.FEWEST_DEVICES})
_MOST = bindparam("most", type_=Integer)


def _conditions(names: tuple[str, ...]) -> list[ColumnElement[bool]]:
    conditions = owner_conditions(dict.fromkeys(names), requests)
    conditions += [_CONDITIONS[name] for name in names if name in _CONDITIONS]
    conditions += [_before(names)] if "before" in names else []
    if "after" in names:
        conditions.append(_depends([name for name in names if name.startswith(_AFTER)]))
    return conditions + [_has_label(name) for name in names if name.startswith(_LABEL)]


def _values(which: RequestFilter) -> dict[str, object]:
    """Return the values of a filter by condition; the order is that of the conditions in SQL."""
    values = owner_values(which)
    if which.ids is not None:
        values["ids"] = sorted(which.ids)
    if which.resumes is not None:
        values["resumes"] = sorted(which.resumes)
    for name in ("node", "program", "since"):
        if (value := getattr(which, name)) is not None:
            values[name] = value
    if which.after is not None:
        values["after"] = True
        for number, name in enumerate(sorted(which.after)):
            values |= {f"{_AFTER}{number}": f'%"{_escaped(name)}"%'}
            values |= {f"{_AFTER}any {number}": f'%"{_escaped(name)}:%'}
    if which.held:
        values["held"] = True
    if which.before is not None:
        values["before"] = which.before
    if which.order is not RequestOrder.NEWEST:
        values |= {f"{_ORDER}{which.order}": True, "now": which.now}
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
        states = sorted(map(str, which.states))
        # For a single state, an index also provides the order.
        if len(states) == 1:
            values["state"] = states[0]
        elif which.states == LIVE:
            values["live"] = True
        else:
            values["states"] = states
        if alive:
            values["alive"] = True
    return values


def _escaped(text: str) -> str:
    for special in (_ESCAPE, "%", "_"):
        text = text.replace(special, _ESCAPE + special)
    return text


_LABEL, _AFTER = "label", "after "


def _has_label(name: str) -> ColumnElement[bool]:
    value = name.replace(_LABEL, "value")
    matching = select(labels.c.number).where(
        labels.c.name == bindparam(name, type_=String),
        labels.c.value == bindparam(value, type_=String),
    )
    return requests.c.number.in_(matching)


def _depends(names: Iterable[str]) -> ColumnElement[bool]:
    """Return the condition for jobs with one of these patterns in what they wait for."""
    after = cast(requests.c.job["after"], String)
    patterns = (bindparam(name, type_=String) for name in names)
    # Most jobs wait for none, which is quick to see.
    return (after != "[]") & or_(*(after.like(each, escape=_ESCAPE) for each in patterns), false())


def _text_matches() -> ColumnElement[bool]:
    """Return the condition for text; it has no index and is evaluated last."""
    columns = (
        requests.c.id,
        requests.c.server_name,
        requests.c.job["notebook_name"].as_string(),
        cast(requests.c.job["command"], String),
    )
    text = bindparam("text", type_=String)
    return or_(*(func.lower(column).like(text, escape=_ESCAPE) for column in columns))


_CONDITIONS: Mapping[str, ColumnElement[bool]] = {
    "node": leases.c.node == bindparam("node"),
    "ids": requests.c.id.in_(bindparam("ids", expanding=True)),
    "program": requests.c.id.in_(
        select(program_jobs.c.request_id)
        .join(programs, programs.c.id == program_jobs.c.program)
        .where(programs.c.name == bindparam("program"))
    ),
    "since": requests.c.submitted_at >= bindparam("since"),
    "resumes": requests.c.job["resumes"].as_string().in_(bindparam("resumes", expanding=True)),
    # The first part is that of the partial index.
    "held": literal_column(f"({CHANGED})", Boolean) & (requests.c.not_before >= UNTIL_RELEASED),
    "text": _text_matches(),
    "server_name": requests.c.server_name == bindparam("server_name"),
    "live session": literal_column(str(LIVE_SESSION), Boolean),  # as in the partial index
    "kind": requests.c.kind == bindparam("kind"),
    "ended": _ENDED,
    "state": requests.c.state == bindparam("state"),
    "states": requests.c.state.in_(bindparam("states", expanding=True)),
    # Literals instead of parameters, so that the index, which starts with the state, is used.
    "live": requests.c.state.in_([literal_column(f"'{state}'", String) for state in sorted(LIVE)]),
    "alive": _ALIVE,  # as in the partial index
}
"""Conditions by name, except those for labels, of which a filter may have several."""
