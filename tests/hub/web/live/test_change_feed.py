"""Many streams cost one read of the store, and each sends only what its user may see."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from carrel.hub.controller.reconciler import LEASE_SECONDS
from carrel.hub.records.events import NewEvent
from carrel.hub.records.identity import Identity
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.queries import EVENTS_AT_ONCE, RequestQueries
from carrel.hub.requests.termination import RequestTermination
from carrel.hub.runtime.context import Context
from carrel.hub.scheduling.model.plan import Plan, Reason, Start, Wait
from carrel.hub.scheduling.model.snapshot import Group
from carrel.hub.schemas import EventOut, RequestOut
from carrel.hub.store import SqlStore
from carrel.hub.web.live.change_feed import ChangeFeed, PageFingerprint
from carrel.hub.web.live.dispatcher import ChangeDispatcher
from carrel.hub.web.live.event_streams import EventStreams
from carrel.hub.web.live.sse import Streams
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
        if name in ("change_digest", "requests", "request", "devices", "allocations", "taught_by"):
            self.reads[name] += 1
        return super().__getattribute__(name)


class CountingQueries(RequestQueries):
    """Queries that count what is read and serialised for streams."""

    def __init__(self, context: Context, made: Counter[str]) -> None:
        super().__init__(context)
        object.__setattr__(self, "made", made)

    def request(self, who: Identity | None, request_id: str) -> RequestOut:
        self.made["request"] += 1
        return super().request(who, request_id)

    def events(
        self, who: Identity | None, request_id: str, after: int = 0, *, limit: int = EVENTS_AT_ONCE
    ) -> list[EventOut]:
        self.made["events"] += 1
        return super().events(who, request_id, after, limit=limit)


@pytest.fixture
def store() -> CountingStore:
    return CountingStore()


@pytest.fixture
def context(store: CountingStore, tmp_path: Path) -> Context:
    clock = Clock()
    made = build(store, FakeBackend(devices=(device(0),), clock=clock), FakeHub(), clock, tmp_path)
    store.put_group(Group(name="math", max_devices=4, max_devices_per_user=2))
    return made


def feed_of(context: Context) -> ChangeFeed:
    requests = RequestQueries(context)
    return ChangeFeed(context.store, requests, context.plan_cache, context.notifier)


async def look(feed: ChangeFeed, people: Sequence[Identity]) -> list[PageFingerprint]:
    return [feed.page_fingerprint(await feed.newest(), who) for who in people]


def test_two_hundred_pages_read_once_per_notification(
    context: Context, store: CountingStore
) -> None:
    async def follow() -> tuple[Counter[str], list[bool]]:
        feed, people = feed_of(context), [*[STUDENT2] * 200, STUDENT1]
        before = await look(feed, people)
        await asyncio.to_thread(JobService(context).submit, STUDENT1, command(devices=0))
        store.reads.clear()
        after = await look(feed, people)
        return Counter(store.reads), [a != b for a, b in zip(before, after, strict=True)]

    reads, news = asyncio.run(follow())
    assert news == [False] * 200 + [True]
    assert reads["change_digest"] == 1
    assert reads["requests"] == 1, "the one that changed, once for all pages"
    assert sum(reads.values()) == 2


def test_an_event_that_changes_nothing_on_a_page_is_no_news(context: Context) -> None:
    """What a cell prints has its own stream; the lists of requests show nothing of it."""

    async def follow() -> list[bool]:
        feed = feed_of(context)
        job = await asyncio.to_thread(JobService(context).submit, STUDENT1, command(devices=0))
        store, now = context.store, context.clock()
        (lease,) = store.grant(
            [Start(request_id=job.id, devices=())], now=now, lease_seconds=LEASE_SECONDS
        )
        store.launch(lease.id, now=now)
        changed = []

        async def after(*events: NewEvent) -> None:
            before = await look(feed, [STUDENT1])
            await asyncio.to_thread(store.add_events, lease.id, events)
            context.notifier.notify()
            changed.append(await look(feed, [STUDENT1]) != before)

        def printed(number: int) -> NewEvent:
            return NewEvent(seq=number, at=now, kind="cell_output", data={"text": "hello"})

        await after(printed(1))
        await after(printed(2))
        await after(NewEvent(seq=3, at=now, kind="note", data={}), printed(4))
        before = await look(feed, [STUDENT1])
        await asyncio.to_thread(RequestTermination(context).cancel, STUDENT1, job.id)
        context.notifier.notify()
        changed.append(await look(feed, [STUDENT1]) != before)
        return changed

    first, *prints, cancelled = asyncio.run(follow())
    assert first, "its content was not known before"
    assert prints == [False, False]
    assert cancelled


def test_two_hundred_streams_of_one_job_read_and_serialise_a_change_once(
    context: Context, store: CountingStore
) -> None:
    """They read nothing at all for another job."""
    made: Counter[str] = Counter()

    async def follow() -> None:
        streams = Streams(context.notifier)
        dispatcher = ChangeDispatcher(feed_of(context), streams)
        queries = CountingQueries(context, made)
        shared = EventStreams(
            requests=queries,
            dispatcher=dispatcher,
            listeners=context.spawner_listeners,
            notifier=context.notifier,
        )
        context.notifier.bind()
        job = await asyncio.to_thread(JobService(context).submit, STUDENT1, command(devices=0))
        followers = [shared.of_request(STUDENT1, job.id, 0) for _ in range(200)]

        async def until(sent: bytes) -> None:
            async def one(stream: AsyncGenerator[bytes, None]) -> None:
                while sent not in await anext(stream):
                    pass

            await asyncio.gather(*map(one, followers))

        await until(b"event: state")
        made.clear()
        await asyncio.to_thread(JobService(context).submit, STUDENT2, command(devices=0))
        await asyncio.to_thread(RequestTermination(context).cancel, STUDENT1, job.id)
        await until(b"event: end")
        for stream in followers:
            await stream.aclose()
        assert streams.open == 0

    asyncio.run(follow())
    assert made == {"request": 1, "events": 1}


def test_a_page_gets_events_only_for_what_its_reader_may_see(context: Context) -> None:
    """A request of student1 in cs101; its teacher is removed before the next one."""

    async def follow() -> list[list[bool]]:
        feed, people = feed_of(context), (STUDENT1, STUDENT2, TEACHER, ADMIN)
        changed = []

        async def news(change: Callable[[], object]) -> None:
            before = await look(feed, people)
            await asyncio.to_thread(change)
            context.notifier.notify()
            after = await look(feed, people)
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
        feed, people = feed_of(context), (STUDENT1, STUDENT2)
        mine = await asyncio.to_thread(JobService(context).submit, STUDENT1, command(devices=1))
        context.plan_cache.publish(place(mine.id, 2))
        before = await look(feed, people)
        context.plan_cache.publish(place(mine.id, 1))
        context.notifier.notify()
        after = await look(feed, people)
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
        change_feed = feed_of(context)
        monkeypatch.setattr(context.store, "change_digest", broken)
        return await asyncio.gather(
            *(change_feed.newest() for _ in range(50)), return_exceptions=True
        )

    failures = asyncio.run(follow())
    assert all(isinstance(failure, OSError) for failure in failures)
    assert len(asked) == 1
