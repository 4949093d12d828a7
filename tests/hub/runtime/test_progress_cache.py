"""The cache of progress: what it reads again."""

from __future__ import annotations

import pytest

from carrel.hub.records.events import NewEvent
from carrel.hub.records.requests import RequestRecord
from carrel.hub.runtime import progress_cache
from carrel.hub.runtime.progress_cache import ProgressCache
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.store import SqlStore

from ...contracts.store_kit import furnish, job
from ...stores import new_store


@pytest.fixture
def running() -> tuple[SqlStore, list[RequestRecord]]:
    store = new_store()
    furnish(store)
    names = ("D0", "D1")
    for name in names:
        store.submit(job(name), now=0.0)
    starts = [Start(request_id=f"j-{name}", devices=(name,)) for name in names]
    for lease in store.grant(starts, now=1.0, lease_seconds=30):
        store.add_events(lease.id, [NewEvent(seq=1, at=1.0, kind="cells", data={"cells": 4})])
    return store, [store.request(f"j-{name}") for name in names]


@pytest.mark.parametrize(("reserved", "reads"), [(2, 2), (0, 4)])
def test_running_jobs_are_read_once_where_there_is_room_for_them(
    running: tuple[SqlStore, list[RequestRecord]],
    monkeypatch: pytest.MonkeyPatch,
    reserved: int,
    reads: int,
) -> None:
    store, jobs = running
    monkeypatch.setattr(progress_cache, "MAX_REQUESTS", 1)
    cache, events, counted = ProgressCache(store), store.events, []

    def read(request_id: str, **which: object) -> object:
        found = events(request_id, **which)  # type: ignore[arg-type]
        counted.extend([request_id] if found else [])
        return found

    monkeypatch.setattr(store, "events", read)
    cache.reserve(reserved)
    shown = [cache.of(each) for each in jobs * 2]
    assert all(each is not None and each.cells == 4 for each in shown)
    assert len(counted) == reads
