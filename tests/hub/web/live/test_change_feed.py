"""Many streams cost one read of the store, and each sends only what its user may see."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from carrel.hub.records.identity import Identity
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.queries import RequestQueries
from carrel.hub.requests.termination import RequestTermination
from carrel.hub.runtime.context import Context
from carrel.hub.scheduling.model.plan import Plan, Reason, Wait
from carrel.hub.scheduling.model.snapshot import Group
from carrel.hub.store import SqlStore
from carrel.hub.web.live.change_feed import ChangeFeed, Fingerprint, StreamCursor
from carrel.hub.web.live.page_fingerprint import PageFingerprint
from carrel.spawners.fake import FakeBackend

from ....stores import TemporaryTransactions
from ...doubles import ADMIN, STUDENT1, STUDENT2, TEACHER, Clock, FakeHub, build, device
from ...requests.samples import command


class CountingStore(SqlStore):
    """A store that counts reads by their names."""

    def __init__(self) -> None:
        super().__init__(TemporaryTransactions())
        self.reads: Counter[str] = Counter()

    def __getattribute__(self, name: str) -> Any:
        if name in ("glance", "requests", "request", "devices", "allocations", "taught_by"):
            self.reads[name] += 1
        return super().__getattribute__(name)


@pytest.fixture
def store() -> CountingStore:
    return CountingStore()


@pytest.fixture
def context(store: CountingStore, tmp_path: Path) -> Context:
    clock = Clock()
    made = build(store, FakeBackend(devices=(device(0),), clock=clock), FakeHub(), clock, tmp_path)
    store.put_group(Group(name="math", max_devices=4, max_devices_per_user=2))
    return made


def page(context: Context, change_feed: ChangeFeed, who: Identity) -> PageFingerprint:
    return PageFingerprint(RequestQueries(context), context.plan_cache, change_feed, who)


async def look(pages: list[PageFingerprint]) -> list[Fingerprint]:
    return list(await asyncio.gather(*(each.read(quiet=False) for each in pages)))


def test_two_hundred_pages_read_once_per_notification(
    context: Context, store: CountingStore
) -> None:
    async def follow() -> tuple[Counter[str], list[bool]]:
        change_feed = ChangeFeed(context.store, context.plan_cache, context.notifier)
        pages = [page(context, change_feed, STUDENT2) for _ in range(200)]
        pages.append(page(context, change_feed, STUDENT1))
        before = await look(pages)
        await asyncio.to_thread(JobService(context).submit, STUDENT1, command(devices=0))
        store.reads.clear()
        after = await look(pages)
        return Counter(store.reads), [a != b for a, b in zip(before, after, strict=True)]

    reads, news = asyncio.run(follow())
    assert news == [False] * 200 + [True]
    assert reads["glance"] == 1
    # Queued and ended requests, for the one page that shows the new request.
    assert reads["requests"] == 2
    assert sum(reads.values()) < 15


def test_two_hundred_streams_of_one_job_read_nothing_for_another(
    context: Context, store: CountingStore
) -> None:
    async def follow() -> tuple[Counter[str], list[bool], list[bool]]:
        change_feed = ChangeFeed(context.store, context.plan_cache, context.notifier)
        first = await asyncio.to_thread(JobService(context).submit, STUDENT1, command(devices=0))
        cursors = [StreamCursor() for _ in range(200)]

        async def news() -> list[bool]:
            return [await change_feed.news(each, first.id, STUDENT1) for each in cursors]

        assert all(await news())
        await asyncio.to_thread(JobService(context).submit, STUDENT2, command(devices=0))
        store.reads.clear()
        of_another = await news()
        reads = Counter(store.reads)
        await asyncio.to_thread(RequestTermination(context).cancel, STUDENT1, first.id)
        return reads, of_another, await news()

    reads, of_another, of_this = asyncio.run(follow())
    assert reads["glance"] == 1
    assert reads["request"] == reads["requests"] == 0
    assert not any(of_another)
    assert all(of_this)


def test_a_page_gets_events_only_for_what_its_reader_may_see(context: Context) -> None:
    """A request of student1 in cs101; its teacher is removed before the next one."""

    async def follow() -> list[list[bool]]:
        change_feed = ChangeFeed(context.store, context.plan_cache, context.notifier)
        pages = [page(context, change_feed, who) for who in (STUDENT1, STUDENT2, TEACHER, ADMIN)]
        changed = []

        async def news(change: Callable[[], object]) -> None:
            before = await look(pages)
            await asyncio.to_thread(change)
            context.notifier.notify()
            after = await look(pages)
            changed.append([a != b for a, b in zip(before, after, strict=True)])

        await news(lambda: JobService(context).submit(STUDENT1, command(devices=0)))
        await news(lambda: context.store.set_teachers("cs101", []))
        await news(lambda: JobService(context).submit(STUDENT1, command(devices=0)))
        return changed

    submitted, dismissed, again = asyncio.run(follow())
    assert submitted == [True, False, True, True]
    assert dismissed == [False, False, True, False], "the requests go from the teacher's page"
    assert again == [True, False, False, True]


def test_a_new_position_sends_an_event_to_the_owner(context: Context) -> None:
    def place(request_id: str, number: int) -> Plan:
        wait = Wait(request_id=request_id, place=number, reason=Reason.NO_FREE_DEVICE)
        return Plan(waits=(wait,))

    async def follow() -> list[bool]:
        change_feed = ChangeFeed(context.store, context.plan_cache, context.notifier)
        mine = await asyncio.to_thread(JobService(context).submit, STUDENT1, command(devices=1))
        context.plan_cache.publish(place(mine.id, 2))
        pages = [page(context, change_feed, who) for who in (STUDENT1, STUDENT2)]
        before = await look(pages)
        context.plan_cache.publish(place(mine.id, 1))
        context.notifier.notify()
        after = await look(pages)
        return [a != b for a, b in zip(before, after, strict=True)]

    assert asyncio.run(follow()) == [True, False]


def test_a_failing_store_is_read_once_for_all_streams(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def broken(_after: int | None) -> None:
        asked.append(1)
        raise OSError("no database")

    async def follow() -> list[object]:
        change_feed = ChangeFeed(context.store, context.plan_cache, context.notifier)
        monkeypatch.setattr(context.store, "glance", broken)
        return await asyncio.gather(
            *(change_feed.newest() for _ in range(50)), return_exceptions=True
        )

    failures = asyncio.run(follow())
    assert all(isinstance(failure, OSError) for failure in failures)
    assert len(asked) == 1
