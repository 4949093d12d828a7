"""Wake only the event streams that have news: one task compares the fingerprints of all of them.

Every follower has the fingerprint of what its stream shows. After a notification the task reads one
digest, computes the fingerprint of every follower, and wakes those whose fingerprint has changed.
Bursts are limited to ten rounds a second for all streams together; the first few follow
immediately, because a device that is released and granted again causes several notifications, and
the last one starts a session.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Hashable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar, cast

from starlette.concurrency import run_in_threadpool

from ...records.identity import Identity
from .change_feed import ChangeFeed, FeedView, Fingerprint
from .sse import StreamPace, Streams

C = TypeVar("C")
T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Follower(Generic[C]):
    """One stream: its fingerprint, and whether it changed since the last ``news``.

    Attributes:
        view: the newest digest that this follower was compared with.
        fingerprint: its fingerprint in that digest.
    """

    fingerprint_of: Callable[[FeedView], C]
    view: FeedView
    fingerprint: C = field(init=False)
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _error: Exception | None = None

    def __post_init__(self) -> None:
        self.fingerprint = self.fingerprint_of(self.view)

    async def news(self, seconds: float) -> bool:
        """Wait at most this long for another fingerprint; return whether it changed.

        Raises:
            CarrelError: the store is not responding.
        """
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return False
        # Cleared before the stream reads: a change during that read wakes it again.
        self._news.clear()
        if self._error is not None:
            raise self._error
        return True

    def compare(self, view: FeedView) -> None:
        self.view = view
        fingerprint = self.fingerprint_of(view)
        if fingerprint != self.fingerprint:
            self.fingerprint = fingerprint
            self._news.set()

    def wake(self, error: Exception | None = None) -> None:
        """Wake it without news: for a shutdown, or for an error of the feed."""
        self._error = error
        self._news.set()


class ChangeDispatcher:
    """The followers of one service, and the task that wakes them."""

    def __init__(self, feed: ChangeFeed, streams: Streams) -> None:
        self.feed = feed
        self.streams = streams
        self._followers: set[Follower[object]] = set()
        self._task: asyncio.Task[None] | None = None
        self._shared: tuple[FeedView | None, dict[Hashable, asyncio.Task[object]]] = None, {}

    @asynccontextmanager
    async def following(
        self, fingerprint_of: Callable[[FeedView], C]
    ) -> AsyncIterator[Follower[C]]:
        """Compare the fingerprint after every notification until the context ends.

        Raises:
            CarrelError: the store is not responding.
        """
        follower = Follower(fingerprint_of, await self.feed.newest())
        self._followers.add(follower)  # type: ignore[arg-type]  # with a fingerprint of any type
        self.streams.open += 1
        if self._task is None:
            self._task = asyncio.create_task(self._run(follower.view.version))
        try:
            yield follower
        finally:
            self.streams.open -= 1
            self._followers.discard(follower)
            if not self._followers and self._task is not None:
                self._task.cancel()
                self._task = None

    def following_request(
        self, request_id: str, who: Identity | None
    ) -> AbstractAsyncContextManager[Follower[Fingerprint]]:
        """Follow one request as this reader sees it; see ``following``."""
        return self.following(lambda view: self.feed.request_fingerprint(view, request_id, who))

    async def rounds(self, follower: Follower[C]) -> AsyncGenerator[bool, None]:
        """Yield immediately, then after every change (True) or after a quiet period (False).

        What a consumer reads within a round is at least as new as the change that started it.
        """
        changed = True
        while not self.streams.closed:
            yield changed
            changed = await follower.news(self.streams.keep_alive)

    async def shared(self, follower: Follower[C], question: Hashable, read: Callable[[], T]) -> T:
        """Run ``read`` in a thread, once for all streams that ask the same after one change."""
        view, tasks = self._shared
        if view is not follower.view:
            tasks = {}
            self._shared = follower.view, tasks
        if question not in tasks:
            tasks[question] = asyncio.create_task(run_in_threadpool(read))
        try:
            # Shielded: other streams wait for the same read.
            return cast(T, await asyncio.shield(tasks[question]))
        except Exception:
            tasks.pop(question, None)
            raise

    async def _run(self, seen: int) -> None:
        pace, clock = StreamPace(), asyncio.get_running_loop().time
        try:
            while True:
                now = await self.streams.notifier.wait(seen, self.streams.keep_alive)
                if self.streams.closed:
                    return self._wake_all(None)
                # Also after a quiet period: other processes make no notification.
                view = await self.feed.newest(again=now == seen)
                seen = view.version
                for follower in tuple(self._followers):
                    follower.compare(view)
                await asyncio.sleep(pace.pause(clock()))
        except Exception as error:
            # The clients reconnect and then get the error as a response.
            self._task = None
            self._wake_all(error)

    def _wake_all(self, error: Exception | None) -> None:
        for follower in tuple(self._followers):
            follower.wake(error)
