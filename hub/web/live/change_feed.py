"""Change feed: read the store once after every notification, however many streams are open.

The feed compares the newest digest with the one before, once for all streams: the content of every
request with new events, the queue positions, and the pool. A stream compares a few numbers (its
fingerprint), and reads the store only when they differ.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from starlette.concurrency import run_in_threadpool

from ...interfaces.store import Store
from ...records.events import ChangeDigest
from ...records.identity import Identity, Viewer
from ...runtime.notifier import ChangeNotifier
from ...runtime.plan_cache import PlanCache
from ...scheduling.model.plan import Wait

_REMEMBERED = 10_000
_COMPARED = 200
"""With more changed requests at a time, all of them count as changed, without a read."""
_LONG_AGO = 60.0
"""After this many seconds without followers, earlier changes are not read."""

Fingerprint = tuple[object, ...]
"""A value that stays equal while there is nothing new for a reader."""


class RequestContents(Protocol):
    """Hashes of the content of requests; see ``RequestQueries``."""

    def content_hashes(self, request_ids: Collection[str]) -> Mapping[str, str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedView:
    """The digest that was read after a notification."""

    version: int
    at: float
    digest: ChangeDigest
    content_hashes: Mapping[str, str]
    waits: Mapping[str, Wait]

    def viewer(self, who: Identity | None) -> Viewer:
        """Return a reader with the current rights."""
        teaches = self.digest.taught.get(who.name, frozenset()) if who else frozenset()
        return Viewer(identity=who, teaches=teaches)

    def has_device(self, who: Identity) -> bool:
        """Return whether this user is charged for a device."""
        return any(a.owner == who.name and a.devices for a in self.digest.allocations)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFingerprint:
    """What the open page of one user depends on.

    Attributes:
        own: changes with the requests that the user may see.
        around: changes with the pool and the positions in the queue.
    """

    own: Fingerprint
    around: Fingerprint


class _Changes:
    """The number of the newest change, by owner and by group of the changed request."""

    def __init__(self) -> None:
        self._count = 0
        self._of_owner: dict[str, int] = {}
        self._of_group: dict[str, int] = {}

    def add(self, owner: str, group: str) -> None:
        self._count += 1
        self._of_owner[owner] = self._of_group[group] = self._count

    def newest(self, viewer: Viewer) -> int:
        """Return the newest change that this viewer may see."""
        if viewer.sees_all:
            return self._count
        groups = (self._of_group.get(group, 0) for group in viewer.teaches)
        return max(self._of_owner.get(viewer.name or "", 0), *groups, 0)


class ChangeFeed:
    """The newest digest, and what has changed since the digests before it."""

    def __init__(
        self,
        store: Store,
        requests: RequestContents,
        plan_cache: PlanCache,
        notifier: ChangeNotifier,
    ) -> None:
        self._store = store
        self._requests = requests
        self._plan_cache = plan_cache
        self._notifier = notifier
        self._newest: FeedView | None = None
        self._reading: asyncio.Task[None] | None = None
        self._of_request: OrderedDict[str, int] = OrderedDict()
        self._forgotten = 0
        """The newest event of all requests that are not remembered."""
        self._hashes: dict[str, str] = {}
        """Of the remembered requests, without those that have not been compared."""
        self._contents, self._positions = _Changes(), _Changes()
        self._pool, self._drains = 0, 0
        self._restarts = 0
        """How often earlier changes were not read: everything may be new then."""

    async def newest(self, *, again: bool = False) -> FeedView:
        """Return a digest that began after the newest notification at the time of the call.

        Args:
            again: read even without a new notification, since other processes make none.

        Raises:
            CarrelError: the store is not responding.
        """
        version, begun = self._notifier.version, self._newest if again else None
        while self._newest is None or self._newest.version < version or self._newest is begun:
            if self._reading is None:
                self._reading = asyncio.create_task(self._read())
            # Shielded: other streams wait for the same read.
            await asyncio.shield(self._reading)
        return self._newest

    def page_fingerprint(self, view: FeedView, who: Identity) -> PageFingerprint:
        """Return a fingerprint of the pages of this user."""
        viewer = view.viewer(who)
        return PageFingerprint(
            own=(self._restarts, self._contents.newest(viewer), viewer.teaches),
            around=(self._positions.newest(viewer), self._pool),
        )

    def request_fingerprint(
        self, view: FeedView, request_id: str, who: Identity | None
    ) -> Fingerprint:
        """Return a fingerprint of one request for this reader."""
        return (
            self._of_request.get(request_id, self._forgotten),
            view.viewer(who).teaches,
            view.waits.get(request_id),
            request_id in view.digest.suspect,
            self._drains,
        )

    async def _read(self) -> None:
        version, before = self._notifier.version, self._newest
        at = asyncio.get_running_loop().time()
        if before is not None and at - before.at >= _LONG_AGO:
            before = None
        try:
            digest, content_hashes = await run_in_threadpool(self._look, before)
        finally:
            self._reading = None
        view = FeedView(
            version=version,
            at=at,
            digest=digest,
            content_hashes=content_hashes,
            waits=self._plan_cache.waits,
        )
        if before is None:
            self._forget(digest.last)
        else:
            self._remember(view)
            self._compare(before, view)
        self._newest = view

    def _look(self, before: FeedView | None) -> tuple[ChangeDigest, Mapping[str, str]]:
        digest = self._store.change_digest(None if before is None else before.digest.last)
        names = {each.request_id for each in digest.touched}
        suspects = digest.suspect ^ (before.digest.suspect if before else digest.suspect)
        names |= suspects
        return digest, self._requests.content_hashes(names) if 0 < len(names) <= _COMPARED else {}

    def _forget(self, last: int) -> None:
        self._of_request.clear()
        self._hashes.clear()
        self._forgotten = last
        self._restarts += 1

    def _remember(self, view: FeedView) -> None:
        for each in view.digest.touched:
            self._of_request[each.request_id] = each.event_id
            self._of_request.move_to_end(each.request_id)
        while len(self._of_request) > _REMEMBERED:
            name, self._forgotten = self._of_request.popitem(last=False)
            self._hashes.pop(name, None)

    def _compare(self, before: FeedView, view: FeedView) -> None:
        """Count what differs from the digest before."""
        digest = view.digest
        readers = {
            a.request_id: (a.owner, a.group)
            for a in (*before.digest.allocations, *digest.allocations)
        } | {each.request_id: (each.owner, each.group) for each in digest.touched}
        suspects = digest.suspect ^ before.digest.suspect
        for name in {each.request_id for each in digest.touched} | suspects:
            now = view.content_hashes.get(name)
            if now is None or now != self._hashes.pop(name, None):
                self._contents.add(*readers.get(name, ("", "")))
            if now is not None and name in self._of_request:
                self._hashes[name] = now
        if view.waits is not before.waits:
            for each in digest.queued:
                if view.waits.get(each.id) != before.waits.get(each.id):
                    self._positions.add(each.owner, each.group)
        self._pool += _pool(digest) != _pool(before.digest)
        self._drains += _drains(digest) != _drains(before.digest)


def _pool(digest: ChangeDigest) -> Fingerprint:
    """Return what pages show of the pool; whose a device is differs from reader to reader."""
    held = frozenset((a.request_id, a.devices) for a in digest.allocations if a.devices)
    return digest.waiting, held, digest.devices


def _drains(digest: ChangeDigest) -> Iterable[object]:
    """Return the marks that end running requests, or that no longer do."""
    return [device.drain for device in digest.devices]
