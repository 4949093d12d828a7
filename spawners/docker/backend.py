"""The engine of containers: an attempt is a container, found by its labels on every machine.

Several machines with a Docker engine form one pool; each device knows its node, and a lease is
looked for on the nodes that may have it. What is needed to find an attempt again lies outside
this process: the labels of its container, and its folder. Its death is what the engine says of
the container: with it all its processes are gone.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from ...hub.attempts.journal import read_journal
from ...hub.attempts.output_limits import OutputLimits
from ...hub.attempts.spec import EVENTS
from ...hub.errors import BackendFailed, Unavailable
from ...hub.interfaces.backend import (
    ActivitySample,
    AttemptStatus,
    LaunchOrder,
    NodeState,
    ProcessState,
    is_own_work,
)
from ...hub.interfaces.backend_settings import BackendSettings
from ...hub.records.events import NewEvent
from ...hub.records.images import Image
from ...hub.records.leases import Handle
from ...hub.records.notices import StopNotice
from ...hub.scheduling.model.snapshot import Device
from ..common import notice_file
from ..common.in_flight_starts import InFlightStarts
from ..local.backend import LocalBackend
from .containers.job_spec import Jobs, was_claimed
from .containers.template import name_of
from .engine import cdi
from .engine.client import START_SECONDS
from .nodes import container_exit, orphans
from .nodes.cpu_meter import ContainerCpuMeter
from .nodes.devices import Devices
from .nodes.node import Node, Seen, Survey
from .nodes.warm_pool import WarmPool

log = logging.getLogger(__name__)

_REMEMBERED = 1000


def create(settings: BackendSettings) -> DockerBackend:
    """The factory of the entry point group ``carrel.backends``."""
    return DockerBackend(settings)


class DockerBackend:
    """Runs jobs in containers, on one machine or several (``hub.ports.backend.Backend``).

    Attributes:
        warm: containers on this machine that wait for jobs.
    """

    name = "docker"
    keeps_inside = True

    def __init__(self, settings: BackendSettings, *, limits: OutputLimits | None = None) -> None:
        if settings.docker is None:
            raise BackendFailed("The Docker engine was chosen without its options.")
        options = settings.docker
        self._settings = settings
        self._memory = options.memory
        self._own = LocalBackend(settings, limits=limits)
        self._jobs = Jobs(settings=settings, options=options, limits=limits or OutputLimits())
        self._nodes = {host.node: Node(host, settings, options) for host in options.hosts}
        here = next(iter(self._nodes.values()))
        self.warm = WarmPool(
            engine=here.engine,
            places=here.places,
            jobs=self._jobs,
            most=options.warm if here.here and not here.places.why_not() else 0,
        )
        self._devices = Devices(
            tuple(self._nodes.values()), settings.installation, settings.simulated_devices
        )
        self._meter = ContainerCpuMeter()
        self._lock = threading.Lock()
        self._starting = InFlightStarts()
        self._places: dict[str, str] = {}
        """On which node a lease was seen."""
        self._ends: dict[str, AttemptStatus] = {}
        """What became of those whose containers are gone, as far as it was seen."""

    # -- the pool -------------------------------------------------------------------------

    def nodes(self) -> tuple[NodeState, ...]:
        waiting = self.warm.waiting()
        return tuple(
            NodeState(
                name=node.name,
                why_not=node.why_not(),
                ready=waiting if node.engine is self.warm.engine else 0,
            )
            for node in self._nodes.values()
        )

    def inventory(self) -> tuple[Device, ...]:
        """Raises Unavailable where no node can be asked."""
        return self._devices.inventory()

    def images(self) -> tuple[Image, ...]:
        """Of all nodes; one that does not answer adds what it had last."""
        return self._devices.images()

    def digest_of(self, reference: str) -> str:
        """The id of an image on this machine. Raises ImageMissing where it is not there."""
        return next(iter(self._nodes.values())).digest_of(reference)

    def kernels(self, home: Path) -> frozenset[str]:
        return frozenset(name for image in self.images() for name in image.kernels)

    # -- attempts -------------------------------------------------------------------------

    def start(self, order: LaunchOrder) -> Handle:
        """At most one container per lease: one that runs is adopted, and given the new token.

        Raises:
            BackendFailed: with what the engine said; nothing runs then.
            Unavailable: the engine does not answer, or its network is not guarded yet.
        """
        if is_own_work(order.lease_id):
            return self._own.start(order)
        node = self._node_for(order)
        with self._starting.busy_with(order.lease_id):
            try:
                self._jobs.prepare(order)
                before = node.survey(START_SECONDS).get(order.lease_id, ())
                running = next((seen.handle for seen in before if seen.handle), None)
                if running is not None:
                    return running
                if was_claimed(order.folder):
                    raise BackendFailed(
                        f"Attempt {order.lease_id} has been run before and has ended."
                    )
                for seen in before:
                    node.engine.remove(seen.id)
                return self._launch(node, order)
            except OSError as error:
                raise BackendFailed(f"The container could not be prepared: {error}.") from error

    def _launch(self, node: Node, order: LaunchOrder) -> Handle:
        node.require_guard(START_SECONDS)
        image = node.digest_of(order.image)
        network = node.networks.ensure(order.owner, outside=order.job.internet)
        with self._lock:
            self._places[order.lease_id] = node.name
            self._ends.pop(order.lease_id, None)
        if self._may_wait(node, order):
            waited = self.warm.start(order, image=image, network=network)
            if waited is not None:
                return waited.handle or Handle(pid=0, started_at=0.0)
        return self._made(node, order, image, network)

    def _may_wait(self, node: Node, order: LaunchOrder) -> bool:
        """Devices and names of the outside are given, or not, when a container is made."""
        ours = node.engine is self.warm.engine
        return ours and not order.devices and order.job.internet

    def _made(self, node: Node, order: LaunchOrder, image: str, network: str) -> Handle:
        if node.engine is self.warm.engine:
            self.warm.make_room()
        engine = node.engine
        by_name = cdi.names(engine, order.devices)
        body = self._jobs.body(order, image=image, network=network, cdi=by_name)
        container = engine.create(name_of(self._settings.installation, order.lease_id), body)
        try:
            engine.start(container)
            found = engine.inspect(container)
        except BackendFailed:
            engine.remove(container)
            raise
        if found is None:
            raise BackendFailed(f"The container of {order.lease_id} was removed as it started.")
        # One that has ended already has no process to name; looking finds out how it ended.
        return found.handle or Handle(pid=0, started_at=0.0)

    def _node_for(self, order: LaunchOrder) -> Node:
        wanted = order.devices[0].node if order.devices else order.node
        if not wanted:
            return next(iter(self._nodes.values()))
        if wanted not in self._nodes:
            raise BackendFailed(f"There is no Docker engine on {wanted} any more.")
        return self._nodes[wanted]

    def status(self, leases: Mapping[str, Handle | None]) -> Mapping[str, AttemptStatus]:
        starting = self._starting.now()
        surveys = self._surveys()
        unknown = AttemptStatus(life=ProcessState.UNKNOWN)
        seen = {
            lease: unknown if lease in starting else self._sighting(lease, surveys)
            for lease in leases
            if not is_own_work(lease)
        }
        return {**seen, **self._own.status(_own(leases))}

    def _surveys(self) -> dict[str, Survey | None]:
        """By node; None of one that does not answer."""
        found: dict[str, Survey | None] = {}
        for node in self._nodes.values():
            try:
                found[node.name] = node.survey()
            except Unavailable as error:
                log.warning("%s", error)
                found[node.name] = None
        with self._lock:
            for name, survey in found.items():
                self._places.update(dict.fromkeys(survey or (), name))
        return found

    def _sighting(self, lease: str, surveys: Mapping[str, Survey | None]) -> AttemptStatus:
        for survey in surveys.values():
            several = survey.get(lease, ()) if survey is not None else ()
            if several:
                return container_exit.sighting(several[0], self._memory)
        # Of one that was never seen any silent node may have it.
        places = [self._places[lease]] if self._places.get(lease) in surveys else [*surveys]
        if any(surveys[place] is None for place in places):
            return AttemptStatus(life=ProcessState.UNKNOWN)
        return self._ends.get(lease, AttemptStatus(life=ProcessState.DEAD))

    def stop(self, lease_id: str, handle: Handle | None, *, patience: float = 4.0) -> bool:
        if is_own_work(lease_id):
            return self._own.stop(lease_id, handle, patience=patience)
        gone = True
        for name, survey in self._surveys().items():
            if survey is None:
                gone = gone and self._places.get(lease_id, name) != name
                continue
            for seen in survey.get(lease_id, ()):
                gone = self._end(self._nodes[name], lease_id, seen, patience) and gone
        return gone

    def _end(self, node: Node, lease_id: str, seen: Seen, patience: float) -> bool:
        try:
            ended = container_exit.bring_about(node.engine, seen, self._memory, patience)
            if ended.life is not ProcessState.DEAD:
                return False
            self._remember(lease_id, ended)
            orphans.keep_log(node.engine, seen, self._settings.state)
            node.engine.remove(seen.id)
        except (BackendFailed, Unavailable) as error:
            log.warning("%s: %s", lease_id, error)
            return False
        return True

    def _remember(self, lease_id: str, sighting: AttemptStatus) -> None:
        with self._lock:
            self._ends[lease_id] = sighting
            for old in list(self._ends)[:-_REMEMBERED]:
                del self._ends[old]
                self._places.pop(old, None)

    def release_warm(self) -> None:
        self.warm.make_room()

    def remove_orphans(self, live: Callable[[], Collection[str]]) -> None:
        for node in self._nodes.values():
            try:
                for lease, seen in orphans.orphan_containers(node, live):
                    if self._end(node, lease, seen, orphans.PATIENCE):
                        log.info("removed the container of %s, which has no lease", lease)
                node.networks.tidy()
                if node.engine is self.warm.engine:
                    self.warm.tidy()
            except (BackendFailed, Unavailable) as error:
                log.warning("%s", error)

    # -- what it does ---------------------------------------------------------------------

    def activity(self, leases: Mapping[str, Handle | None]) -> ActivitySample:
        self._meter.forget_others(leases)
        cpu_seconds: dict[str, float] = {}
        for node, lease, seen in self._running(leases):
            try:
                used = self._meter.read(lease, node.engine, seen)
            except Unavailable as error:
                log.warning("%s", error)
                continue
            if used is not None:
                cpu_seconds[lease] = used
        own = self._own.activity(_own(leases)).cpu_seconds if _own(leases) else {}
        return ActivitySample(cpu_seconds={**cpu_seconds, **own}, devices=self._devices.uses())

    def _running(self, leases: Collection[str]) -> Iterator[tuple[Node, str, Seen]]:
        for name, survey in self._surveys().items():
            for lease in survey or ():
                if lease in leases and survey is not None and survey[lease][0].running:
                    yield self._nodes[name], lease, survey[lease][0]

    def request_checkpoint(
        self, lease_id: str, handle: Handle | None, folder: Path, notice: StopNotice
    ) -> None:
        if is_own_work(lease_id):
            return self._own.request_checkpoint(lease_id, handle, folder, notice)
        if not notice_file.write(folder, notice, owner=self._jobs.owner):
            return
        for node, lease, seen in self._running((lease_id,)):
            try:
                container_exit.signal_those_that_wait(node.engine, seen, lease)
            except (BackendFailed, Unavailable) as error:
                log.warning("%s: %s", lease, error)

    def withdraw_notice(self, folder: Path) -> None:
        notice_file.remove(folder)

    def journal(self, folder: Path) -> Sequence[NewEvent]:
        return read_journal(folder / EVENTS)


def _own(leases: Mapping[str, Handle | None]) -> dict[str, Handle | None]:
    return {lease: handle for lease, handle in leases.items() if is_own_work(lease)}
