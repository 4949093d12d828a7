"""The list of requests: filters, pages, and bulk cancellation after confirmation."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from ....config.base_url import SERVICE_PREFIX
from ....errors import CarrelError
from ....records.identity import Identity
from ....records.requests import RequestOrder
from ....requests.pagination import RequestQuery
from ....scheduling.model.states import TERMINAL, State
from ....schemas import RequestOut, RequestsOut
from ...dependencies.callers import Carrel
from ...dependencies.context import WebContext
from ...dependencies.visitors import Guest, Pairs, html
from ...html.downloads import attachment
from ...security.access import Visitor
from .list_csv import csv_text

_PER_PAGE = 100
_AT_ONCE = 1000
_PATIENCE_SECONDS = 8.0
_LIVE = frozenset(State) - TERMINAL - {State.STOPPING}
_ENDED_BADLY = frozenset({State.FAILED, State.TIMED_OUT})
_BY_CHOICE = {
    "": None,
    "live": frozenset(State) - TERMINAL,
    "ended": frozenset(TERMINAL),
    "bad": _ENDED_BADLY,
}
_CHOICES = (
    ("", "any"),
    ("live", "not ended"),
    ("ended", "ended"),
    ("bad", "failed or timed out"),
    *((str(state), str(state).replace("_", " ")) for state in State),
)
_TABS = (("", "All"), ("live", "Not ended"), ("ended", "Ended"), ("bad", "Failed"))
_FILTERS = ("state", "kind", "group", "label", "text", "whose", "owner", "node", "order")

_NEWEST = str(RequestOrder.NEWEST)
_COLUMNS = {
    "submitted": (RequestOrder.NEWEST, RequestOrder.OLDEST),
    "duration": (RequestOrder.LONGEST, RequestOrder.SHORTEST),
    "devices": (RequestOrder.MOST_DEVICES, RequestOrder.FEWEST_DEVICES),
}
"""The descending and the ascending order of each column that sorts the list."""

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """The filter in the URL of the page; empty fields match all requests."""

    state: str = ""
    kind: str = ""
    group: str = ""
    label: str = ""
    text: str = ""
    whose: str = "mine"
    owner: str = ""
    node: str = ""
    order: str = ""
    cursor: str = ""

    @property
    def is_default(self) -> bool:
        """Whether all requests of the user match."""
        return replace(self, cursor="") == Filter()

    @property
    def is_unfiltered(self) -> bool:
        """Whether all requests of the user match, or all that the user may see."""
        return replace(self, whose=Filter().whose).is_default

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The filter without the cursor."""
        return [(name, value) for name in _FILTERS if (value := str(getattr(self, name)))]

    def url(self, cursor: str = "") -> str:
        return f"{SERVICE_PREFIX}requests?" + urlencode(
            [*self.pairs, *([("cursor", cursor)] if cursor else [])]
        )

    def tab(self, state: str) -> str:
        """Return the URL of the first page with another choice of states."""
        return replace(self, state=state).url()

    def sorted_by(self, first: str, second: str) -> str:
        """Return the URL of the list in the first order, or in the second if it has the first."""
        return replace(self, order=second if (self.order or _NEWEST) == first else first).url()

    @property
    def csv_url(self) -> str:
        return f"{SERVICE_PREFIX}requests.csv?" + urlencode(self.pairs)

    def query(self) -> RequestQuery:
        states = _BY_CHOICE.get(self.state, frozenset({self.state}))
        return RequestQuery(
            kind=self.kind or None,
            states=frozenset(map(str, states)) if states else None,
            labels=tuple(self.label.split()),
            text=self.text,
            group=self.group or None,
            owner=self.owner or None,
            node=self.node or None,
            mine=self.whose != "all",
            limit=_PER_PAGE,
            cursor=self.cursor,
            order=self.order or _NEWEST,
        )


def _chosen(
    *,
    state: Annotated[str, Query(max_length=20)] = "",
    kind: Annotated[str, Query(max_length=20)] = "",
    group: Annotated[str, Query(max_length=64)] = "",
    label: Annotated[str, Query(max_length=1000)] = "",
    text: Annotated[str, Query(max_length=200)] = "",
    whose: Annotated[str, Query(max_length=10)] = "mine",
    owner: Annotated[str, Query(max_length=255)] = "",
    node: Annotated[str, Query(max_length=255)] = "",
    order: Annotated[str, Query(max_length=20)] = "",
    cursor: Annotated[str, Query(max_length=64)] = "",
) -> Filter:
    return Filter(
        state=state,
        kind=kind,
        group=group.strip(),
        label=label.strip(),
        text=text.strip(),
        whose=whose,
        owner=owner.strip(),
        node=node.strip(),
        order=order,
        cursor=cursor,
    )


Chosen = Annotated[Filter, Depends(_chosen)]


@router.get("/requests.csv")
def download(web: Carrel, visitor: Guest, chosen: Chosen) -> Response:
    """Download the whole list as a table, all pages of it."""
    saved = {"Content-Disposition": attachment("requests.csv")}
    text = csv_text(_all(web, visitor.identity, replace(chosen.query(), cursor="")))
    return Response(text, media_type="text/csv; charset=utf-8", headers=saved)


def _all(web: WebContext, who: Identity, query: RequestQuery) -> Iterator[RequestOut]:
    """Yield all matching requests, page by page."""
    query = replace(query, limit=_AT_ONCE)
    while True:
        page = web.requests.find(who, query)
        yield from page.requests
        if not page.next:
            return
        query = replace(query, cursor=page.next)


@router.get("/requests")
def list_requests(*, web: Carrel, visitor: Guest, chosen: Chosen) -> Response:
    """List requests; every filter, order and page has its own URL."""
    groups = () if visitor.identity.admin else web.group_choices.current(visitor.identity)
    with web.context.store.together():
        return _list(web, visitor, chosen, [group.name for group in groups])


def _list(web: WebContext, visitor: Visitor, chosen: Filter, groups: Sequence[str]) -> Response:
    who, error = visitor.identity, None
    try:
        found = web.requests.find(who, replace(chosen.query(), brief=True))
    except CarrelError as refused:
        found, error = RequestsOut(requests=[]), refused
    page = web.render_for(
        visitor,
        "jobs/requests.html",
        filter=chosen,
        found=found,
        error=error,
        states=_CHOICES,
        columns=_COLUMNS,
        tabs=_TABS,
        groups=sorted({*_groups_seen(web, who, groups), *filter(None, [chosen.group])}),
        first_page=chosen.url(),
        next_page=chosen.url(found.next) if found.next else "",
    )
    return html(page, error.http_status if error else 200)


def _groups_seen(web: WebContext, who: Identity, own: Sequence[str]) -> Iterable[str]:
    """Return the groups whose requests may be in the list."""
    if who.admin:
        return (group.name for group in web.context.store.groups())
    return (*own, *web.usage.teaches(who))


@router.post("/requests/cancel")
def cancel_many(web: Carrel, visitor: Guest, pairs: Pairs) -> Response:
    """Ask for confirmation with the number, then cancel as many as fit in one response."""
    fields, who = dict(pairs), visitor.identity
    chosen = Filter(**{name: fields[name] for name in _FILTERS if name in fields})
    cancel_all = fields.get("which") == "all"
    ids = [value for name, value in pairs if name == "id" and not cancel_all]
    targets = list(_cancellable(web, who, chosen) if cancel_all else _named(web, who, ids))
    done, problems = 0, list[str]()
    if fields.get("confirmed") == "yes":
        reason = fields.get("reason", "").strip()[:500]
        done, problems = _cancel(web, who, targets, reason)
        targets = targets[done + len(problems) :]
    return html(
        web.render_for(
            visitor,
            "jobs/requests_cancel.html",
            filter=chosen,
            which="all" if cancel_all else "chosen",
            ids=[] if cancel_all else [target.id for target in targets],
            left=len(targets),
            others=any(target.owner != who.name for target in targets),
            done=done,
            problems=problems[:5],
            back=chosen.url(),
        )
    )


def _cancellable(web: WebContext, who: Identity, chosen: Filter) -> Iterator[RequestOut]:
    """Yield all matching requests that have not ended."""
    query = chosen.query()
    live = frozenset(map(str, _LIVE))
    states = live & query.states if query.states is not None else live
    if not states:
        return
    yield from _all(web, who, replace(query, states=states))


def _named(web: WebContext, who: Identity, ids: Sequence[str]) -> Iterator[RequestOut]:
    for request_id in ids:
        request = web.requests.request(who, request_id)
        if not request.ended and request.state != "stopping":
            yield request


def _cancel(
    web: WebContext, who: Identity, targets: Sequence[RequestOut], reason: str
) -> tuple[int, list[str]]:
    """Return the number of requests cancelled before the time ran out, and the errors."""
    until, done, problems = time.monotonic() + _PATIENCE_SECONDS, 0, list[str]()
    # Newest first, as listed: a cancellation then does not start a request that is cancelled next.
    for target in targets:
        if time.monotonic() > until:
            break
        try:
            web.termination.cancel(who, target.id, reason)
            done += 1
        except CarrelError as error:
            problems.append(f"{target.id}: {error}")
    return done, problems
