"""A fingerprint of what the open page of one user shows."""

from __future__ import annotations

import hashlib

from starlette.concurrency import run_in_threadpool

from ...inventory.pool import pool_of
from ...records.identity import Identity, Viewer
from ...requests.queries import RequestQueries
from ...runtime.plan_cache import PlanCache
from ...scheduling.model.states import LIVE, TERMINAL
from .change_feed import ChangeFeed, Clues, FeedView

VOLATILE = {"device_seconds"}
"""Grows every second, which alone is not a change."""


class PageFingerprint:
    """Read only what may have changed since the last time."""

    def __init__(
        self, requests: RequestQueries, plan_cache: PlanCache, feed: ChangeFeed, who: Identity
    ) -> None:
        self._queries = requests
        self._plan_cache = plan_cache
        self._feed = feed
        self._who = who
        self._clues: Clues | None = None
        self._requests = ""
        self._live: frozenset[str] = frozenset()
        self._standing: Clues | None = None
        self._pool = ""
        self.charging = False
        """Whether this user has a device."""

    async def look(self, *, silence: bool) -> Clues:
        """Return a value that is equal to the last one while the page shows nothing new.

        After a silent period everything is read again.
        """
        look = await self._feed.newest()
        viewer = look.viewer(self._who)
        await self._look_at_requests(look, viewer, silence)
        await self._look_at_pool(look, viewer)
        return (self._requests, self._pool)

    async def _look_at_requests(self, look: FeedView, viewer: Viewer, silence: bool) -> None:
        waits = self._plan_cache.waits
        newest = self._feed.newest_event(viewer)

        def clues() -> Clues:
            places = tuple(waits.get(request_id) for request_id in sorted(self._live))
            return (newest, viewer.teaches, places, self._live & look.glance.suspect)

        if silence or self._clues != clues():
            self._requests, self._live = await run_in_threadpool(self._read)
            # Taken before the read: what changes meanwhile is read once more.
            self._clues = clues()

    def _read(self) -> tuple[str, frozenset[str]]:
        found = [
            request
            for states in (LIVE, TERMINAL)
            for request in self._queries.requests(
                self._who, kind=None, states=states, mine=False, limit=200
            )
        ]
        seen = hashlib.sha256()
        for request in found:
            seen.update(request.model_dump_json(exclude=VOLATILE).encode())
        live = frozenset(request.id for request in found if not request.ended)
        return seen.hexdigest(), live

    async def _look_at_pool(self, look: FeedView, viewer: Viewer) -> None:
        glance = look.glance
        standing = (glance.devices, glance.allocations, glance.waiting, viewer.teaches)
        if standing == self._standing:
            return
        self._standing = standing
        pool = await run_in_threadpool(
            pool_of, glance.devices, glance.allocations, glance.waiting, viewer
        )
        self._pool = pool.model_dump_json()
        self.charging = any(tile.state == "yours" for tile in pool.devices)
