"""Cached rows of ended requests equal the stored ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import URL, Engine, event

from carrel.hub.interfaces.store import Store
from carrel.hub.records.requests import RequestFilter
from carrel.hub.scheduling.model.states import TERMINAL, State
from carrel.hub.store import open_store
from carrel.hub.store.sql import request_search
from carrel.hub.store.sql.transactions import Transactions
from carrel.hub.transitions import lifecycle

from ....contracts.store_kit import CANCELLED, DONE, furnish, job, running, session
from ....property_settings import examples

FILTERS = (
    RequestFilter(),
    RequestFilter(owner="ada", states=TERMINAL),
    RequestFilter(reader="ben", reader_groups=frozenset({"lab"}), node="n1"),
    RequestFilter(states=frozenset({State.SUCCEEDED, State.QUEUED})),
    RequestFilter(before="j-3", limit=2),
)
STEPS = st.lists(st.sampled_from(["submit", "run", "end", "cancel"]), min_size=3, max_size=14)


class Site:
    """Requests that are submitted, run, and end or are cancelled."""

    def __init__(self, store: Store) -> None:
        self.store, self.now, self.made = store, 100.0, 0
        self.waiting: list[str] = []
        self.lease = ""
        furnish(store)

    def step(self, what: str) -> None:
        self.now += 10
        if what == "submit":
            self.made += 1
            new = job(str(self.made), devices=0)
            self.waiting.append(self.store.submit(new, self.now).id)
        elif what == "run" and not self.lease:
            self.made += 1
            self.lease = running(self.store, session(str(self.made)), "D0", at=self.now).id
        elif what == "cancel" and self.waiting:
            self.store.apply(
                self.waiting.pop(0), lifecycle.stop, State.CANCELLED, CANCELLED, now=self.now
            )
        elif what == "end" and self.lease:
            request_id = self.store.lease(self.lease).request_id
            self.store.apply(request_id, lifecycle.stop, State.SUCCEEDED, DONE, now=self.now)
            self.store.apply_to_lease(
                self.lease, lifecycle.finish, now=self.now, charge_until=self.now
            )
            self.lease = ""


@examples(12, 500, database=None)
@given(steps=STEPS)
def test_a_cached_search_finds_what_a_new_one_finds(steps: list[str]) -> None:
    with TemporaryDirectory() as folder:
        store, newcomer = (open_store(Path(folder) / "carrel.db") for _ in range(2))
        site = Site(store)
        for step in steps:
            site.step(step)
            for which in FILTERS:
                assert store.requests(which) == newcomer.requests(which)
        fresh = open_store(Path(folder) / "carrel.db")
        for which in FILTERS:
            assert store.requests(which) == fresh.requests(which)
        for each in (store, newcomer, fresh):
            each.close()


@contextmanager
def whole_rows() -> Iterator[list[str]]:
    """Collect the queries that read whole rows of requests."""
    asked: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
        if "requests.idempotency_key" in statement and statement.startswith("SELECT"):
            asked.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield asked
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def test_rows_of_ended_requests_are_read_once(tmp_path: Path) -> None:
    store = open_store(tmp_path / "carrel.db")
    site = Site(store)
    for step in ("submit", "submit", "cancel", "cancel"):
        site.step(step)
    first = store.requests(RequestFilter())
    with whole_rows() as asked:
        assert store.requests(RequestFilter(owner="ada")) == first
        assert asked == []
        site.step("submit")
        asked.clear()
        assert len(store.requests(RequestFilter())) == 3
        assert len(asked) == 1
    store.close()


def test_the_cache_has_a_maximum_size(tmp_path: Path) -> None:
    store = open_store(tmp_path / "carrel.db")
    transactions = Transactions(URL.create("sqlite", database=str(tmp_path / "carrel.db")))
    site, kept = Site(store), request_search.RequestSearch(most=2)
    for step in ("submit", "cancel") * 4:
        site.step(step)
        found = transactions.read(lambda c: kept.find(c, RequestFilter()))
        assert found == store.requests(RequestFilter())
        assert len(kept) <= 2
    transactions.close()
    store.close()
