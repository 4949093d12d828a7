"""Fingerprint of the open page of one user, to detect changes."""

from __future__ import annotations

import hashlib

from starlette.concurrency import run_in_threadpool

from ...inventory.pool import pool_of
from ...records.identity import Identity, Viewer
from ...requests.queries import RequestQueries
from ...runtime.plan_cache import PlanCache
from ...scheduling.model.states import LIVE, TERMINAL
from .change_feed import ChangeFeed, FeedView, Fingerprint

VOLATILE = {"device_seconds"}
"""Fields that grow every second, which alone is not a change."""


class PageFingerprint:
    """Reads the parts of a page that may have changed since the last time."""

    def __init__(
        self, requests: RequestQueries, plan_cache: PlanCache, feed: ChangeFeed, who: Identity
    ) -> None:
        self._queries = requests
        self._plan_cache = plan_cache
        self._feed = feed
        self._who = who
        self._requests_read: Fingerprint | None = None
        self._requests = ""
        self._live: frozenset[str] = frozenset()
        self._pool_read: Fingerprint | None = None
        self._pool = ""
        self.charging = False
        """Whether this user has a device."""

    async def read(self, *, quiet: bool) -> Fingerprint:
        """Return the current fingerprint; after a ``quiet`` period all requests are read again."""
        view = await self._feed.newest()
        viewer = view.viewer(self._who)
        await self._read_requests(view, viewer, quiet)
        await self._read_pool(view, viewer)
        return (self._requests, self._pool)

    async def _read_requests(self, view: FeedView, viewer: Viewer, quiet: bool) -> None:
        waits = self._plan_cache.waits
        newest = self._feed.newest_event(viewer)

        def fingerprint() -> Fingerprint:
            places = tuple(waits.get(request_id) for request_id in sorted(self._live))
            return (newest, viewer.teaches, places, self._live & view.glance.suspect)

        if quiet or self._requests_read != fingerprint():
            self._requests, self._live = await run_in_threadpool(self._digest)
            # ``newest`` is from before the read: later changes are read once more.
            self._requests_read = fingerprint()

    def _digest(self) -> tuple[str, frozenset[str]]:
        """Return a digest of the listed requests, and the ids of the live ones."""
        found = [
            request
            for states in (LIVE, TERMINAL)
            for request in self._queries.requests(
                self._who, kind=None, states=states, mine=False, limit=200
            )
        ]
        digest = hashlib.sha256()
        for request in found:
            digest.update(request.model_dump_json(exclude=VOLATILE).encode())
        live = frozenset(request.id for request in found if not request.ended)
        return digest.hexdigest(), live

    async def _read_pool(self, view: FeedView, viewer: Viewer) -> None:
        glance = view.glance
        fingerprint = (glance.devices, glance.allocations, glance.waiting, viewer.teaches)
        if fingerprint == self._pool_read:
            return
        self._pool_read = fingerprint
        pool = await run_in_threadpool(
            pool_of, glance.devices, glance.allocations, glance.waiting, viewer
        )
        self._pool = pool.model_dump_json()
        self.charging = any(tile.state == "yours" for tile in pool.devices)
