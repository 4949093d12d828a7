"""Containers that wait for jobs: made ahead for the images that are asked for now, used once.

Such a container is hardened like any other, and is nobody's: it has no home, no user and no
network, only a runner and a Python kernel that have started. A job takes it over in four steps,
each of which a crash may follow:

1. the container gets the name of the lease, which is the claim: an engine has a name only once
2. it moves into its owner's network
3. the job's folders are bound into it, the attempt's last: from here on it counts as begun
4. the bell is rung, on which its runner has waited; whoever finds it begun rings again

One that has a lease and has not begun runs nothing: it is taken for dead and removed. One without
a lease is of the service that made it, and is removed by the next one.
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
"""How long a job counts as a reason to expect another one."""
AT_ONCE_SECONDS: Final = 10.0
SETTLED_SECONDS: Final = 1.0
"""None is made while jobs are just being started: it would take the processors from them."""
ROOM_BYTES: Final = 256 << 20
"""What one that waits may need."""
_AGAIN_SECONDS: Final = 300.0
"""Until it is tried again where none could be made."""


class Demand:
    """How many jobs of one image have come at once of late."""

    def __init__(self) -> None:
        self._times: deque[float] = deque()

    def came(self, now: float) -> None:
        self._times.append(now)
        self._forget(now)

    def most_at_once(self, now: float) -> int:
        """Within ``AT_ONCE_SECONDS``, in the last ``RECENT_SECONDS``."""
        self._forget(now)
        times, most, first = tuple(self._times), 0, 0
        for number, at in enumerate(times):
            while at - times[first] > AT_ONCE_SECONDS:
                first += 1
            most = max(most, number - first + 1)
        return most

    @property
    def last(self) -> float:
        return self._times[-1] if self._times else -1e9

    def _forget(self, now: float) -> None:
        while self._times and now - self._times[0] > RECENT_SECONDS:
            self._times.popleft()


def wanted(demands: Mapping[str, Demand], most: int, now: float) -> dict[str, int]:
    """How many of each image are to wait: of the one that was asked for last first."""
    found: dict[str, int] = {}
    for image, demand in sorted(demands.items(), key=lambda each: -each[1].last):
        found[image] = min(most - sum(found.values()), demand.most_at_once(now))
    return found


@dataclass(slots=True, kw_only=True)
class WarmContainer:
    """Attributes:
    container: its id; empty while it is being made.
    pid: of its first process, as this host counts.
    """

    name: str
    image: str
    container: str = ""
    pid: int = 0


@dataclass(slots=True, kw_only=True)
class WarmPool:
    """Of the engine on this machine; usable from any thread.

    Attributes:
        most: how many may wait.
    """

    engine: DockerClient
    places: LateMounts
    jobs: Jobs
    most: int
    clock: Callable[[], float] = time.monotonic
    free_memory: Callable[[], int] = lambda: int(psutil.virtual_memory().available)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _mine: dict[str, WarmContainer] = field(default_factory=dict)
    _busy: set[str] = field(default_factory=set)
    """Those that are being taken over."""
    _demands: dict[str, Demand] = field(default_factory=dict)
    _not_before: float = -1e9

    # -- a job comes ------------------------------------------------------------------------

    def start(self, order: LaunchOrder, *, image: str, network: str) -> Container | None:
        """Give the job a container that waits; None where none does, and nothing has happened.

        Raises:
            Unavailable: the engine does not answer; whether it has begun is seen later.
        """
        taken = self._take(image)
        if taken is None:
            return None
        try:
            self.engine.rename(taken.container, name_of(self._installation, order.lease_id))
            self.engine.move(taken.container, out_of=NO_NETWORK, into=network)
            self._fill(taken, order)
        except (BackendFailed, OSError) as error:
            log.warning("%s does not get %s: %s", order.lease_id, taken.name, error)
            self._pause()
            self._discard(taken)
            return None
        finally:
            with self._lock:
                self._busy.discard(taken.name)
        # Whoever looked in the meantime may have rung before.
        self.places.ring(taken.name)
        return self.engine.inspect(taken.container)

    def _fill(self, taken: WarmContainer, order: LaunchOrder) -> None:
        self.places.fill(taken.name, self.jobs.mounts(order))
        if not appears(taken.pid):
            raise BackendFailed(
                "What is mounted here does not appear in containers: does the engine see the "
                "mounts of this service?"
            )

    def expect(self, image: str) -> None:
        """A job of this image has come, and others may come."""
        with self._lock:
            self._demands.setdefault(image, Demand()).came(self.clock())

    def _take(self, image: str) -> WarmContainer | None:
        self.expect(image)
        now = self.clock()
        with self._lock:
            self._not_before = max(self._not_before, now + SETTLED_SECONDS)
            for each in self._mine.values():
                if each.image == image and each.container and self.places.listens(each.name):
                    self._busy.add(each.name)
                    return self._mine.pop(each.name)
        return None

    def make_room(self) -> None:
        """A container is about to be made: as many go as its memory takes."""
        while self.free_memory() < self.jobs.options.memory + ROOM_BYTES:
            with self._lock:
                ready = [each for each in self._mine.values() if each.container]
                if not ready:
                    return
                one = self._mine.pop(ready[-1].name)
            log.info("%s is given up: its memory is needed", one.name)
            self._discard(one)

    # -- from time to time ------------------------------------------------------------------

    def waiting(self) -> int:
        """How many are ready."""
        with self._lock:
            names = [each.name for each in self._mine.values() if each.container]
        return sum(map(self.places.listens, names))

    def tidy(self) -> None:
        """Remove what is not wanted, or of nobody, and make what is.

        Raises:
            BackendFailed, Unavailable: the engine does not do it.
        """
        self._remove_orphans()
        self.make_room()
        now = self.clock()
        with self._lock:
            aims = wanted(self._demands, self.most, now)
            too_many = self._too_many(aims)
            for each in too_many:
                del self._mine[each.name]
            have = [each.image for each in self._mine.values()]
        for each in too_many:
            self._discard(each)
        for image, number in aims.items():
            for _ in range(number - have.count(image)):
                if self.clock() < self._not_before or not self._has_room():
                    return
                self._make(image)

    def _too_many(self, aims: Mapping[str, int]) -> list[WarmContainer]:
        left = dict(aims)
        over = []
        for each in self._mine.values():
            left[each.image] = left.get(each.image, 0) - 1
            if left[each.image] < 0:
                over.append(each)
        return over

    def _has_room(self) -> bool:
        return self.free_memory() >= self.jobs.options.memory + 2 * ROOM_BYTES

    def _make(self, image: str) -> None:
        one = WarmContainer(name=f"warm-{secrets.token_hex(4)}", image=image)
        with self._lock:
            self._mine[one.name] = one
        try:
            mounts = self.places.make(one.name)
            body = self.jobs.waiting_body(one.name, image=image, mounts=mounts)
            container = self.engine.create(name_of(self._installation, one.name), body)
            self.engine.start(container)
            found = self.engine.inspect(container)
        except (BackendFailed, Unavailable, OSError) as error:
            log.warning("no container can wait for jobs now: %s", error)
            self._pause()
            with self._lock:
                self._mine.pop(one.name, None)  # it may have been given up meanwhile
            return  # what there is of it is of nobody, and removed with such
        if found is not None and found.handle is not None:
            one.pid = found.handle.pid
        one.container = container

    def _remove_orphans(self) -> None:
        """What an earlier service made, what has ended, and folders without a container."""
        with self._lock:
            before = self._mine.keys() | self._busy
        names = self.places.names()
        listed = self.engine.containers({LABEL: self._installation, WARM: ""})
        there = {each.labels[WARM] for each in listed}
        for each in listed:
            name = each.labels[WARM]
            if lease_of(each.name, each.labels) or self._keeps(name, before, each.running):
                continue
            self.engine.remove(each.id)
            there.discard(name)
        with self._lock:
            for name in before & self._mine.keys() - there:
                del self._mine[name]
            kept = there | self._mine.keys() | self._busy
        for name in names - kept:
            self.places.remove(name)

    def _keeps(self, name: str, before: AbstractSet[str], running: bool) -> bool:
        """Of one that had no lease when it was listed, after it was known who was there."""
        with self._lock:
            mine = self._mine.get(name)
            if mine is not None and mine.container and not running:
                log.warning("%s has ended, of image %s, and waited for nobody", name, mine.image)
                del self._mine[name]
                self._not_before = self.clock() + _AGAIN_SECONDS
                return False
            return mine is not None or name in before or name in self._busy

    def _pause(self) -> None:
        """Something is wrong with it that will not be better in a moment."""
        with self._lock:
            self._not_before = self.clock() + _AGAIN_SECONDS

    def _discard(self, one: WarmContainer) -> None:
        try:
            self.engine.remove(one.container)
        except (BackendFailed, Unavailable) as error:
            log.warning("%s: %s", one.name, error)  # tidying finds it again

    @property
    def _installation(self) -> str:
        return self.jobs.settings.installation
