"""Select one page of the requests that match a query and that the viewer may see."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from ..admission.request_factory import check_labels
from ..errors import InvalidInput, NotFound
from ..interfaces.store import Store
from ..records.identity import Viewer
from ..records.requests import RequestFilter, RequestOrder, RequestRecord
from ..scheduling.model.snapshot import Kind
from ..scheduling.model.states import State

MAX_TEXT = 200
"""Maximum characters of a search text; SQLite limits patterns to 50,000 bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestQuery:
    """The criteria of a list of requests; empty criteria match all requests.

    Attributes:
        labels: ``name=value`` strings; all must match.
        node: the node of the newest lease.
        text: a substring of the id, the session's name, the notebook's name or the command.
        owner: the owner by name; if None, ``mine`` selects the viewer's own requests.
        cursor: the id of the last request of the previous page.
        order: a ``RequestOrder``.
        brief: omit what a long list does not show: charge, warning and what is used.
    """

    kind: str | None = None
    states: frozenset[str] | None = None
    labels: tuple[str, ...] = ()
    group: str | None = None
    owner: str | None = None
    node: str | None = None
    text: str = ""
    mine: bool = True
    limit: int = 200
    cursor: str = ""
    order: str = RequestOrder.NEWEST
    brief: bool = False


@dataclass(frozen=True, slots=True)
class RequestPage:
    records: tuple[RequestRecord, ...]
    next: str


def page(store: Store, viewer: Viewer, wanted: RequestQuery, now: float) -> RequestPage:
    """Return one page of the requests that the viewer may see.

    Raises:
        InvalidInput: the query has an invalid value.
    """
    if len(wanted.text) > MAX_TEXT:
        raise InvalidInput(
            f"The search text has {len(wanted.text):,} characters.",
            accepted=f"At most {MAX_TEXT} characters.",
            field="text",
        )
    owner = viewer.name if wanted.owner is None and wanted.mine else wanted.owner
    which = RequestFilter(
        owner=owner,
        # Without a condition on the reader, the query for one owner uses an index.
        reader=None if viewer.sees_all or owner == viewer.name else viewer.name,
        reader_groups=viewer.teaches,
        kind=_member(Kind, wanted.kind, "kind") if wanted.kind else None,
        states=_states(wanted.states) if wanted.states else None,
        labels=_labels(wanted.labels),
        groups=frozenset({wanted.group}) if wanted.group else None,
        node=wanted.node,
        program=viewer.only_program,
        text=wanted.text or None,
        before=_cursor(store, viewer, wanted.cursor) if wanted.cursor else None,
        order=_member(RequestOrder, wanted.order, "order"),
        now=now,
        limit=wanted.limit + 1,
    )
    found = store.requests(which)
    records = found[: wanted.limit]
    more = len(found) > wanted.limit and records
    return RequestPage(records, records[-1].id if more else "")


def _states(names: Iterable[str]) -> frozenset[State]:
    return frozenset(_member(State, name, "state") for name in names)


def _labels(given: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in given:
        name, separator, value = text.partition("=")
        if not separator or found.get(name, value) != value:
            raise InvalidInput(
                f"Invalid label: {text[:80]!r}.",
                accepted="Give name=value, each name once, such as label=sweep=7.",
                field="label",
            )
        found[name] = value
    return check_labels(found)


def _cursor(store: Store, viewer: Viewer, cursor: str) -> str:
    try:
        last = store.request(cursor)
    except NotFound:
        last = None
    # Requests that the viewer may not see are reported as missing, so that ids reveal nothing.
    if last is None or not viewer.may_see(last.owner, last.group, last.program):
        raise InvalidInput(
            f"Invalid cursor: {cursor[:80]!r}.",
            accepted="Give 'next' of the previous page, unchanged.",
            field="cursor",
        )
    return cursor


_Choice = TypeVar("_Choice", bound=StrEnum)


def _member(kind: type[_Choice], value: str, what: str) -> _Choice:
    try:
        return kind(value)
    except ValueError:
        raise InvalidInput(
            f"There is no {what} {value[:40]!r}.", accepted=f"One of: {', '.join(kind)}."
        ) from None
