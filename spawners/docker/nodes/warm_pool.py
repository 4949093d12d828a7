"""Keep warm containers for jobs: created ahead for the images in demand, each used once.

A warm container is hardened like any other. It has no owner, no home and no network, only a runner
and a Python kernel that have started. A job takes it over in four steps, each of which a crash may
follow:

1. the container gets the name of the lease, which is the claim: names in an engine are unique 2. it
moves into its owner's network 3. the job's folders are bound into it, the attempt's last: from here
on it counts as started 4. the bell, on which its runner waits, is rung; a service that finds it
started rings again

A container that has a lease and has not started runs nothing: it counts as dead and is removed. One
without a lease belongs to the service that made it, and a later service removes it.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

import psutil

from ....hub.errors import BackendFailed, Unavailable
from ....hub.interfaces.backend import LaunchOrder
from ..containers.job_spec import NO_NETWORK, Jobs
from ..containers.late_mounts import LateMounts, appears
from ..containers.template import LABEL, WARM, lease_of, name_of
from ..engine.client import Container, DockerClient

log = logging.getLogger(__name__)

RECENT_SECONDS: Final = 1800.0
"""How long a job counts as demand for another one."""
AT_ONCE_SECONDS: Final = 10.0
SETTLED_SECONDS: Final = 1.0
"""Delay after a job's start before a container is created, which would compete for CPU time."""
WARM_BYTES: Final = 256 << 20
"""Memory that a warm container may need."""
_RETRY_SECONDS: Final = 300.0
"""Delay until the next attempt after a failure."""


class Demand:
    """How many jobs of one image have recently started at once."""

    def __init__(self) -> None:
        self._times: deque[float] = deque()

    def add(self, now: float) -> None:
        self._times.append(now)
        self._forget(now)

    def most_at_once(self, now: float) -> int:
        """Return the most jobs within ``AT_ONCE_SECONDS``, in the last ``RECENT_SECONDS``."""
        self._forget(now)
        times, limit, first = tuple(self._times), 0, 0
        for number, at in enumerate(times):
            while at - times[first] > AT_ONCE_SECONDS:
                first += 1
            limit = max(limit, number - first + 1)
        return limit

    @property
    def last(self) -> float:
        return self._times[-1] if self._times else -1e9

    def _forget(self, now: float) -> None:
        while self._times and now - self._times[0] > RECENT_SECONDS:
            self._times.popleft()


def targets(demands: Mapping[str, Demand], limit: int, now: float) -> dict[str, int]:
    """Return how many warm containers each image gets: the last requested image first."""
    found: dict[str, int] = {}
    for image, demand in sorted(demands.items(), key=lambda each: -each[1].last):
        found[image] = min(limit - sum(found.values()), demand.most_at_once(now))
    return found


@dataclass(slots=True, kw_only=True)
class WarmContainer:
    """A container of the pool.

    Attributes:
        container: its id; empty while it is being created.
        pid: its first process, as this host counts.
    """

    name: str
    image: str
    container: str = ""
    pid: int = 0


@dataclass(slots=True, kw_only=True)
class WarmPool:
    """The warm containers of the engine on this machine; usable from any thread.

    Attributes:
        limit: how many containers may wait.
    """

    engine: DockerClient
    late_mounts: LateMounts
    jobs: Jobs
    limit: int
    clock: Callable[[], float] = time.monotonic
    free_memory: Callable[[], int] = lambda: int(psutil.virtual_memory().available)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _containers: dict[str, WarmContainer] = field(default_factory=dict)
    _busy: set[str] = field(default_factory=set)
    """The containers that are being taken over."""
    _demands: dict[str, Demand] = field(default_factory=dict)
    _paused_until: float = -1e9

    # -- starting a job ---------------------------------------------------------------------

    def start(self, order: LaunchOrder, *, image: str, network: str) -> Container | None:
        """Start the job in a warm container; return None, with no effect, if there is none.

        Raises:
            Unavailable: the engine does not answer; a later survey tells whether the job started.
        """
        claimed = self._claim(image)
        if claimed is None:
            return None
        try:
            self.engine.rename(claimed.container, name_of(self._installation, order.lease_id))
            self.engine.change_network(claimed.container, out_of=NO_NETWORK, into=network)
            self._fill(claimed, order)
        except (BackendFailed, OSError) as error:
            log.warning("%s could not take over %s: %s", order.lease_id, claimed.name, error)
            self._pause()
            self._discard(claimed)
            return None
        finally:
            with self._lock:
                self._busy.discard(claimed.name)
        # A survey in the meantime may have rung already.
        self.late_mounts.ring(claimed.name)
        return self.engine.inspect(claimed.container)

    def _fill(self, claimed: WarmContainer, order: LaunchOrder) -> None:
        self.late_mounts.fill(claimed.name, self.jobs.mounts(order))
        if not appears(claimed.pid):
            raise BackendFailed(
                "Mounts made here do not appear in containers: the engine may not share this "
                "service's mounts."
            )

    def expect(self, image: str) -> None:
        """Record that a job of this image has started, and that others may follow."""
        with self._lock:
            self._demands.setdefault(image, Demand()).add(self.clock())

    def _claim(self, image: str) -> WarmContainer | None:
        self.expect(image)
        now = self.clock()
        with self._lock:
            self._paused_until = max(self._paused_until, now + SETTLED_SECONDS)
            for each in self._containers.values():
                if each.image == image and each.container and self.late_mounts.listens(each.name):
                    self._busy.add(each.name)
                    return self._containers.pop(each.name)
        return None

    def release_memory(self) -> None:
        """Remove as many containers as a new container needs memory."""
        while self.free_memory() < self.jobs.options.memory + WARM_BYTES:
            with self._lock:
                ready = [each for each in self._containers.values() if each.container]
                if not ready:
                    return
                one = self._containers.pop(ready[-1].name)
            log.info("removing %s: its memory is needed", one.name)
            self._discard(one)

    # -- maintenance ------------------------------------------------------------------------

    def ready_count(self) -> int:
        """Return how many containers are ready."""
        with self._lock:
            names = [each.name for each in self._containers.values() if each.container]
        return sum(map(self.late_mounts.listens, names))

    def maintain(self) -> None:
        """Remove surplus and orphaned containers, and create the ones that are in demand.

        Raises:
            BackendFailed, Unavailable: the engine does not do it.
        """
        self._remove_orphans()
        self.release_memory()
        now = self.clock()
        with self._lock:
            targets_by_image = targets(self._demands, self.limit, now)
            surplus = self._surplus(targets_by_image)
            for each in surplus:
                del self._containers[each.name]
            have = [each.image for each in self._containers.values()]
        for each in surplus:
            self._discard(each)
        for image, number in targets_by_image.items():
            for _ in range(number - have.count(image)):
                if self.clock() < self._paused_until or not self._has_memory():
                    return
                self._make(image)

    def _surplus(self, targets_by_image: Mapping[str, int]) -> list[WarmContainer]:
        left = dict(targets_by_image)
        surplus = []
        for each in self._containers.values():
            left[each.image] = left.get(each.image, 0) - 1
            if left[each.image] < 0:
                surplus.append(each)
        return surplus

    def _has_memory(self) -> bool:
        return self.free_memory() >= self.jobs.options.memory + 2 * WARM_BYTES

    def _make(self, image: str) -> None:
        one = WarmContainer(name=f"warm-{secrets.token_hex(4)}", image=image)
        with self._lock:
            self._containers[one.name] = one
        try:
            mounts = self.late_mounts.make(one.name)
            body = self.jobs.warm_body(one.name, image=image, mounts=mounts)
            container = self.engine.create(name_of(self._installation, one.name), body)
            self.engine.start(container)
            found = self.engine.inspect(container)
        except (BackendFailed, Unavailable, OSError) as error:
            log.warning("no warm container could be created: %s", error)
            self._pause()
            with self._lock:
                self._containers.pop(one.name, None)  # it may have been removed meanwhile
            return  # _remove_orphans() removes what was created
        if found is not None and found.handle is not None:
            one.pid = found.handle.pid
        one.container = container

    def _remove_orphans(self) -> None:
        """Remove an earlier service's containers, ended ones, and folders without a container."""
        with self._lock:
            before = self._containers.keys() | self._busy
        names = self.late_mounts.names()
        listed = self.engine.containers({LABEL: self._installation, WARM: ""})
        there = {each.labels[WARM] for each in listed}
        for each in listed:
            name = each.labels[WARM]
            if lease_of(each.name, each.labels) or self._is_in_use(name, before, each.running):
                continue
            self.engine.remove(each.id)
            there.discard(name)
        with self._lock:
            for name in before & self._containers.keys() - there:
                del self._containers[name]
            kept = there | self._containers.keys() | self._busy
        for name in names - kept:
            self.late_mounts.remove(name)

    def _is_in_use(self, name: str, before: AbstractSet[str], running: bool) -> bool:
        """Whether a container is kept that had no lease when it was listed.

        ``before``: the containers known before the listing.
        """
        with self._lock:
            known = self._containers.get(name)
            if known is not None and known.container and not running:
                log.warning("the warm container %s of image %s has ended", name, known.image)
                del self._containers[name]
                self._paused_until = self.clock() + _RETRY_SECONDS
                return False
            return known is not None or name in before or name in self._busy

    def _pause(self) -> None:
        """Create no containers for a while after a failure, which will not pass at once."""
        with self._lock:
            self._paused_until = self.clock() + _RETRY_SECONDS

    def _discard(self, one: WarmContainer) -> None:
        try:
            self.engine.remove(one.container)
        except (BackendFailed, Unavailable) as error:
            log.warning("%s: %s", one.name, error)  # maintain() finds it again

    @property
    def _installation(self) -> str:
        return self.jobs.settings.installation
