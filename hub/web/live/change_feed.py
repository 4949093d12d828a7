"""Change feed: read the store once after every notification, however many streams are open.

Every stream compares the newest digest with the one that it has sent; only a stream that may have
news reads the store, with the rights of its reader.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool

from ...interfaces.store import Store
from ...records.events import ChangeDigest
from ...records.identity import Identity, Viewer
from ...runtime.notifier import ChangeNotifier
from ...runtime.plan_cache import PlanCache

_REMEMBERED = 10_000
_LONG_AGO = 60.0
"""After this many seconds without followers, earlier changes are not read."""

Fingerprint = tuple[object, ...]
"""A value that stays equal while there is nothing new for a reader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedView:
    """The digest that was read after a notification."""

    version: int
    at: float
    glance: ChangeDigest

    def viewer(self, who: Identity | None) -> Viewer:
        """Return a reader with the current rights."""
        teaches = self.glance.taught.get(who.name, frozenset()) if who else frozenset()
        return Viewer(identity=who, teaches=teaches)


@dataclass(slots=True)
class StreamCursor:
    """The fingerprint of the last read of one stream."""

    fingerprint: Fingerprint | None = None


class ChangeFeed:
    """The newest digest, and the last change by request and by reader."""

    def __init__(self, store: Store, plan_cache: PlanCache, notifier: ChangeNotifier) -> None:
        self._store = store
        self._plan_cache = plan_cache
        self._notifier = notifier
        self._newest: FeedView | None = None
        self._reading: asyncio.Task[None] | None = None
        self._of_request: OrderedDict[str, int] = OrderedDict()
        self._forgotten = 0
        """The newest event of all requests that are not remembered."""
        self._of_reader: dict[tuple[str, str], int] = {}
        """The newest event by owner and group, of those later than the next."""
        self._begun = 0

    async def newest(self) -> FeedView:
        """Return a digest that began after the newest notification at the time of the call.

        Raises:
            CarrelError: the store is not responding.
        """
        version = self._notifier.version
        while self._newest is None or self._newest.version < version:
            if self._reading is None:
                self._reading = asyncio.create_task(self._read())
            # Shielded: other streams wait for the same read.
            await asyncio.shield(self._reading)
        return self._newest

    async def _read(self) -> None:
        version, before = self._notifier.version, self._newest
        at = asyncio.get_running_loop().time()
        after = before.glance.last if before and at - before.at < _LONG_AGO else None
        try:
            glance = await run_in_threadpool(self._store.glance, after)
        finally:
            self._reading = None
        if after is None:
            self._of_request.clear()
            self._of_reader.clear()
            self._begun = self._forgotten = glance.last
        for each in glance.touched:
            self._of_request[each.request_id] = each.event_id
            self._of_request.move_to_end(each.request_id)
            self._of_reader[each.owner, each.group] = each.event_id
        while len(self._of_request) > _REMEMBERED:
            self._forgotten = self._of_request.popitem(last=False)[1]
        self._newest = FeedView(version=version, at=at, glance=glance)

    def _fingerprint(self, request_id: str, view: FeedView, who: Identity | None) -> Fingerprint:
        """Return a fingerprint of one request for this reader."""
        return (
            self._of_request.get(request_id, self._forgotten),
            view.viewer(who).teaches,
            self._plan_cache.waits.get(request_id),
            request_id in view.glance.suspect,
        )

    def newest_event(self, viewer: Viewer) -> int:
        """Return the newest event that this viewer may see."""
        seen = (at for reader, at in self._of_reader.items() if viewer.may_see(*reader))
        return max(seen, default=self._begun)

    async def news(self, cursor: StreamCursor, request_id: str, who: Identity | None) -> bool:
        """Return whether one request may have changed for this reader since the last call."""
        view = await self.newest()
        fingerprint = self._fingerprint(request_id, view, who)
        before, cursor.fingerprint = cursor.fingerprint, fingerprint
        return fingerprint != before
