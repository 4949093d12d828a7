"""Keep warm containers for jobs: created in advance for the images in demand, used once.

A warm container is isolated like any other. It has no owner, no home and no network, only a runner
and a Python kernel that have started. A job takes it over in four steps; a crash may follow any of
them:

1. The container is renamed after the lease. This is the claim: names in an engine are unique.
2. It is connected to its owner's network.
3. The job's folders are bound into it, the attempt's last. From here on it counts as started.
4. A write to its wake-up pipe wakes its runner. A service that finds it started writes again.

A container with a lease that has not started runs no job: it counts as dead and is removed. A
container without a lease belongs to the service that created it; a later service removes it.
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
from ...runner.warm_start import WARM_BYTES
from ..containers.job_spec import NO_NETWORK, Jobs
from ..containers.late_mounts import LateMounts, attempt_is_visible
from ..containers.template import LABEL, WARM, lease_of, name_of
from ..engine.client import Container, DockerClient
from .learned_packages import LearnedPackages

log = logging.getLogger(__name__)

RECENT_SECONDS: Final = 1800.0
"""How long a job counts as demand for another one."""
AT_ONCE_SECONDS: Final = 10.0
"""Jobs that start within this time count as started together."""
SETTLED_SECONDS: Final = 1.0
"""Delay of a container's creation after a job's start: it would compete with it for CPU time."""
_RETRY_SECONDS: Final = 300.0
"""Delay until the next attempt after a failure, which is likely to repeat."""
_BUSY_SECONDS: Final = 15.0
"""Delay until the next attempt after the engine has not answered in time."""


class Demand:
    """Counts how many jobs of an image have recently started together."""

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
    """Return the number of warm containers by image; the last requested image comes first."""
    counts: dict[str, int] = {}
    for image, demand in sorted(demands.items(), key=lambda item: -item[1].last):
        counts[image] = min(limit - sum(counts.values()), demand.most_at_once(now))
    return counts


@dataclass(slots=True, kw_only=True)
class WarmContainer:
    """A container of the pool.

    Attributes:
        container: its id; empty while it is being created.
        pid: pid of its first process on this host.
    """

    name: str
    image: str
    container: str = ""
    pid: int = 0


@dataclass(slots=True, kw_only=True)
class WarmPool:
    """The warm containers of the engine on this machine; safe to use from any thread.

    Attributes:
        limit: the most warm containers.
    """

    engine: DockerClient
    packages: LearnedPackages
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
        """Start the job in a warm container; return None if there is none or it fails.

        Raises:
            Unavailable: the engine does not answer; a later survey shows whether the job started.
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
            self._pause(_RETRY_SECONDS)
            self._discard(claimed)
            return None
        finally:
            with self._lock:
                self._busy.discard(claimed.name)
        # Harmless if a survey has woken the runner meanwhile.
        self.late_mounts.wake(claimed.name)
        return self.engine.inspect(claimed.container)

    def _fill(self, claimed: WarmContainer, order: LaunchOrder) -> None:
        self.late_mounts.fill(claimed.name, self.jobs.mounts(order))
        if not attempt_is_visible(claimed.pid):
            raise BackendFailed(
                "Mounts of the service do not appear in containers: the engine may not share the "
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
            for warm in self._containers.values():
                if warm.image == image and warm.container and self.late_mounts.listens(warm.name):
                    self._busy.add(warm.name)
                    return self._containers.pop(warm.name)
        return None

    def release_memory(self) -> None:
        """Remove warm containers until a new container has enough memory."""
        while self.free_memory() < self.jobs.options.memory + WARM_BYTES:
            with self._lock:
                ready = [warm for warm in self._containers.values() if warm.container]
                if not ready:
                    return
                warm = self._containers.pop(ready[-1].name)
            log.info("removing %s: its memory is needed", warm.name)
            self._discard(warm)

    # -- maintenance ------------------------------------------------------------------------

    def ready_count(self) -> int:
        """Return the number of containers whose runner waits for a job."""
        with self._lock:
            names = [warm.name for warm in self._containers.values() if warm.container]
        return sum(map(self.late_mounts.listens, names))

    def maintain(self) -> None:
        """Remove surplus and orphaned containers, and create the ones that are in demand.

        Raises:
            BackendFailed: the engine refuses.
            Unavailable: the engine does not answer.
        """
        self._remove_orphans()
        self.release_memory()
        now = self.clock()
        with self._lock:
            targets_by_image = targets(self._demands, self.limit, now)
            surplus = self._surplus(targets_by_image)
            for warm in surplus:
                del self._containers[warm.name]
            existing = [warm.image for warm in self._containers.values()]
        for warm in surplus:
            self._discard(warm)
        for image, number in targets_by_image.items():
            for _ in range(number - existing.count(image)):
                if self.clock() < self._paused_until or not self._has_memory():
                    return
                self._create(image)

    def _surplus(self, targets_by_image: Mapping[str, int]) -> list[WarmContainer]:
        left = dict(targets_by_image)
        surplus = []
        for warm in self._containers.values():
            left[warm.image] = left.get(warm.image, 0) - 1
            if left[warm.image] < 0:
                surplus.append(warm)
        return surplus

    def _has_memory(self) -> bool:
        return self.free_memory() >= self.jobs.options.memory + 2 * WARM_BYTES

    def _create(self, image: str) -> None:
        warm = WarmContainer(name=f"warm-{secrets.token_hex(4)}", image=image)
        with self._lock:
            self._containers[warm.name] = warm
        try:
            mounts = self.late_mounts.make(warm.name)
            known = self.packages.of(image)
            body = self.jobs.warm_body(warm.name, image=image, mounts=mounts, packages=known)
            container = self.engine.create(name_of(self._installation, warm.name), body)
            self.engine.start(container)
            found = self.engine.inspect(container)
        except (BackendFailed, Unavailable, OSError) as error:
            log.warning("no warm container could be created: %s", error)
            self._pause(_BUSY_SECONDS if isinstance(error, Unavailable) else _RETRY_SECONDS)
            with self._lock:
                self._containers.pop(warm.name, None)  # it may have been removed meanwhile
            return  # _remove_orphans() removes what was created
        if found is not None and found.handle is not None:
            warm.pid = found.handle.pid
        warm.container = container

    def _remove_orphans(self) -> None:
        """Remove containers of an earlier service, ended ones, and folders without a container."""
        with self._lock:
            before = self._containers.keys() | self._busy
        names = self.late_mounts.names()
        listed = self.engine.containers({LABEL: self._installation, WARM: ""})
        there = {container.labels[WARM] for container in listed}
        for container in listed:
            name = container.labels[WARM]
            if lease_of(container.name, container.labels) or self._is_in_use(
                name, before, container.running
            ):
                continue
            self.engine.remove(container.id)
            there.discard(name)
        with self._lock:
            for name in before & self._containers.keys() - there:
                del self._containers[name]
            kept = there | self._containers.keys() | self._busy
        for name in names - kept:
            self.late_mounts.remove(name)

    def _is_in_use(self, name: str, before: AbstractSet[str], running: bool) -> bool:
        """Whether a container that had no lease when it was listed is kept.

        Args:
            before: the containers known before the listing.
        """
        with self._lock:
            known = self._containers.get(name)
            if known is not None and known.container and not running:
                log.warning("the warm container %s of image %s has ended", name, known.image)
                del self._containers[name]
                self._paused_until = self.clock() + _RETRY_SECONDS
                return False
            return known is not None or name in before or name in self._busy

    def _pause(self, seconds: float) -> None:
        """Create no containers for this long."""
        with self._lock:
            self._paused_until = self.clock() + seconds

    def _discard(self, warm: WarmContainer) -> None:
        try:
            self.engine.remove(warm.container)
        except (BackendFailed, Unavailable) as error:
            log.warning("%s: %s", warm.name, error)  # maintain() finds it again

    @property
    def _installation(self) -> str:
        return self.jobs.settings.installation
