"""Run attempts in Docker containers, on one or several machines.

Several machines with a Docker engine form one pool. A device has the name of its node, and a lease
is looked up on the nodes that may have it. A restarted service finds an attempt by the labels of
its container and by its folder. An attempt is dead when its engine reports that: all processes end
with the container.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

from ...hub.attempts.journal import read_journal
from ...hub.attempts.output_limits import OutputLimits
from ...hub.attempts.spec import EVENTS
from ...hub.errors import BackendFailed, Unavailable
from ...hub.interfaces.backend import (
    ActivitySample,
    AttemptStatus,
    GangSupport,
    LaunchOrder,
    NodeState,
    ProcessState,
)
from ...hub.interfaces.backend_settings import BackendSettings
from ...hub.interfaces.devices import DeviceSignals, DriverProblem, ValidationReading
from ...hub.records.events import NewEvent
from ...hub.records.gangs import split_member_id
from ...hub.records.images import Image
from ...hub.records.leases import Handle
from ...hub.records.notices import StopNotice
from ...hub.records.utilization import NO_USE, ProcessReading, UtilizationReading
from ...hub.scheduling.model.snapshot import Device
from ..common import notice_file
from ..common.gang_processes import gang_status, members_in
from ..common.gang_start import start_members
from ..common.in_flight_starts import InFlightStarts
from ..devices.pressure import node_pressure
from ..local.backend import LocalBackend
from .containers.job_spec import Jobs, was_claimed
from .containers.networks import MOST_MEMBERS
from .containers.swarm_networks import overlay_name
from .containers.template import name_of
from .engine import cdi
from .engine.client import START_SECONDS
from .nodes import container_exit, orphans
from .nodes.cpu_meter import ContainerCpuMeter
from .nodes.devices import Devices
from .nodes.learned_packages import LearnedPackages
from .nodes.node import Node, Survey, SurveyedContainer
from .nodes.swarm import Swarm
from .nodes.warm_pool import WarmPool

log = logging.getLogger(__name__)

_REMEMBERED = 1000


def create(settings: BackendSettings) -> DockerBackend:
    """Entry point (group ``carrel.backends``)."""
    return DockerBackend(settings)


class DockerBackend:
    """Runs jobs in containers, on one machine or several (``hub.interfaces.backend.Backend``).

    Attributes:
        warm: the warm containers on this machine.
    """

    name = "docker"
    keeps_inside = True

    def __init__(self, settings: BackendSettings, *, limits: OutputLimits | None = None) -> None:
        if settings.docker is None:
            raise BackendFailed("The options of the Docker engine are missing.")
        options = settings.docker
        self._settings = settings
        self._memory = options.memory
        self._local = LocalBackend(settings, limits=limits)
        self._jobs = Jobs(settings=settings, options=options, limits=limits or OutputLimits())
        self._nodes = {host.node: Node(host, settings, options) for host in options.hosts}
        here = next(iter(self._nodes.values()))
        self._swarm = Swarm(
            [node.engine for node in self._nodes.values()], settings.installation, options.subnets
        )
        self._packages = LearnedPackages(folder=settings.state / "packages")
        self.warm = WarmPool(
            engine=here.engine,
            packages=self._packages,
            late_mounts=here.late_mounts,
            jobs=self._jobs,
            limit=options.warm if here.here and not here.late_mounts.unavailable_reason() else 0,
        )
        self._devices = Devices(
            tuple(self._nodes.values()),
            settings.installation,
            settings.simulated_devices,
            settings.state,
        )
        self._meter = ContainerCpuMeter()
        self._lock = threading.Lock()
        self._starting = InFlightStarts()
        self._node_of_lease: dict[str, str] = {}
        """The node on which a lease was last seen, by lease id."""
        self._started: dict[str, tuple[str, Path]] = {}
        """The image and folder of leases that this service has started."""
        self._final_statuses: dict[str, AttemptStatus] = {}
        """The final status of leases whose container was removed, by lease id."""

    # -- the pool -------------------------------------------------------------------------

    @property
    def gangs(self) -> GangSupport:
        return self._swarm.support()

    def nodes(self) -> tuple[NodeState, ...]:
        ready = self.warm.ready_count()
        return tuple(
            NodeState(
                name=node.name,
                why_not=node.unavailable_reason(),
                ready=ready if node.engine is self.warm.engine else 0,
            )
            for node in self._nodes.values()
        )

    def node(self, name: str) -> Node:
        """Return the node of this name. Raises KeyError if there is none."""
        return self._nodes[name]

    def inventory(self) -> tuple[Device, ...]:
        """Return the devices of all nodes. Raises Unavailable if no node answers."""
        return self._devices.inventory()

    def driver_problems(self) -> tuple[DriverProblem, ...]:
        return self._devices.problems()

    def device_signals(self) -> Mapping[str, DeviceSignals]:
        return self._devices.signals()

    def validate_devices(self, devices: Sequence[Device]) -> Mapping[str, ValidationReading]:
        return self._devices.validate(devices)

    def images(self) -> tuple[Image, ...]:
        """Return the images of all nodes; a node that does not answer keeps its last list."""
        return self._devices.images()

    def digest_of(self, reference: str) -> str:
        """Return the id of an image on this machine. Raises ImageMissing if it is not there."""
        return next(iter(self._nodes.values())).digest_of(reference)

    def kernels(self, home: Path) -> frozenset[str]:
        return frozenset(name for image in self.images() for name in image.kernels)

    # -- attempts -------------------------------------------------------------------------

    def start(self, order: LaunchOrder) -> Handle:
        """Start at most one container per lease: a running one is adopted and gets the new token.

        Raises:
            BackendFailed: the engine refused, and nothing runs.
            Unavailable: the engine does not answer, or its firewall rules are not set yet.
        """
        if order.trusted:
            return self._local.start(order)
        node = self._node_for(order)
        with self._starting.busy_with(order.lease_id):
            try:
                self._jobs.prepare(order)
                before = node.survey(START_SECONDS).get(order.lease_id, ())
                running = next((seen.handle for seen in before if seen.handle), None)
                if running is not None:
                    return running
                if was_claimed(order.folder):
                    raise BackendFailed(f"Attempt {order.lease_id} has run before and has ended.")
                for seen in before:
                    node.engine.remove(seen.id)
                return self._launch(node, order)
            except OSError as error:
                raise BackendFailed(f"The container could not be prepared: {error}.") from error

    def start_gang(self, orders: Sequence[LaunchOrder]) -> Mapping[str, Handle]:
        """Start all containers of a gang; if they are on several nodes, first their network.

        Member 0 last: the folder for output files is in its own, where it could replace the folder
        by a link before the engine mounts it into the other containers. All members wait for each
        other, but Python executes files of the owner's home when it starts.
        """
        orders = self._with_network(orders)
        try:
            for order in orders:
                self._jobs.prepare(order)
        except OSError as error:
            raise BackendFailed(f"The containers could not be prepared: {error}.") from error
        first, *others = orders
        return start_members(self, [*others, first])

    def _with_network(self, orders: Sequence[LaunchOrder]) -> Sequence[LaunchOrder]:
        """Return the orders with the subnet of the members' network, if they are on several nodes.

        Raises:
            BackendFailed: the nodes have no network between them.
            Unavailable: an engine does not answer.
        """
        nodes = sorted({self._node_for(order).name for order in orders})
        if len(nodes) == 1:
            return orders
        lease_id, _ = split_member_id(orders[0].lease_id)
        subnet = self._swarm.ensure(orders[0].owner, lease_id, nodes)
        return [
            replace(order, member=replace(order.member, subnet=subnet))
            for order in orders
            if order.member is not None
        ]

    def _launch(self, node: Node, order: LaunchOrder) -> Handle:
        node.require_firewall(START_SECONDS)
        image = node.digest_of(order.image)
        network = self._network(node, order)
        with self._lock:
            self._node_of_lease[order.lease_id] = node.name
            self._started[order.lease_id] = (image, order.folder)
            self._final_statuses.pop(order.lease_id, None)
        if self._can_be_warm(node, order):
            adopted = self.warm.start(order, image=image, network=network)
            if adopted is not None:
                return adopted.handle or Handle(pid=0, started_at=0.0)
        return self._create(node, order, image, network)

    def _network(self, node: Node, order: LaunchOrder) -> str:
        outside = order.job.internet
        if order.member is None:
            return node.networks.ensure(order.owner, outside=outside)
        lease_id, _ = split_member_id(order.lease_id)
        return node.networks.ensure_gang(order.owner, lease_id, outside=outside)

    def _can_be_warm(self, node: Node, order: LaunchOrder) -> bool:
        """Whether a warm container can run the job.

        Its devices, DNS and member of a gang cannot be changed.
        """
        local = node.engine is self.warm.engine
        plain = not order.devices and order.member is None
        return local and plain and order.job.internet

    def _create(self, node: Node, order: LaunchOrder, image: str, network: str) -> Handle:
        if node.engine is self.warm.engine:
            self.warm.release_memory()
        engine = node.engine
        by_name = cdi.names(engine, order.devices)
        body = self._jobs.body(order, image=image, network=network, cdi=by_name)
        container = engine.create(name_of(self._settings.installation, order.lease_id), body)
        try:
            if order.member is not None and order.member.subnet:
                lease_id, _ = split_member_id(order.lease_id)
                engine.connect(container, overlay_name(self._settings.installation, lease_id))
            engine.start(container)
            found = engine.inspect(container)
        except BackendFailed:
            engine.remove(container)
            raise
        if found is None:
            raise BackendFailed(f"The container of {order.lease_id} was removed as it started.")
        # A container that has ended already has no process; its status says how it ended.
        return found.handle or Handle(pid=0, started_at=0.0)

    def _node_for(self, order: LaunchOrder) -> Node:
        name = order.devices[0].node if order.devices else order.node
        if not name:
            return next(iter(self._nodes.values()))
        if name not in self._nodes:
            raise BackendFailed(f"The node {name} no longer has a Docker engine.")
        return self._nodes[name]

    def status(
        self, leases: Mapping[str, Handle | None], *, trusted: Collection[str] = ()
    ) -> Mapping[str, AttemptStatus]:
        starting = self._starting.now()
        surveys = self._surveys()
        unknown = AttemptStatus(life=ProcessState.UNKNOWN)
        in_containers = {
            lease: unknown if lease in starting else self._attempt_status(lease, surveys)
            for lease in leases
            if lease not in trusted
        }
        local = {lease: handle for lease, handle in leases.items() if lease in trusted}
        return {**in_containers, **self._local.status(local)}

    def _surveys(self) -> dict[str, Survey | None]:
        """Return the surveys by node; None for a node that does not answer."""
        surveys: dict[str, Survey | None] = {}
        for node in self._nodes.values():
            try:
                surveys[node.name] = node.survey()
            except Unavailable as error:
                log.warning("%s", error)
                surveys[node.name] = None
        with self._lock:
            for name, survey in surveys.items():
                for group in survey or ():
                    lease_id, _ = split_member_id(group)
                    self._node_of_lease[group] = self._node_of_lease[lease_id] = name
        return surveys

    def _attempt_status(self, lease: str, surveys: Mapping[str, Survey | None]) -> AttemptStatus:
        for survey in surveys.values():
            containers = survey.get(lease, ()) if survey is not None else ()
            if containers:
                return container_exit.attempt_status(containers[0], self._memory)
        if members := members_in(lease, surveys):
            return gang_status([self._attempt_status(name, surveys) for name in members])
        # The container of a lease that was never seen may be on any node that does not answer.
        node = self._node_of_lease.get(lease)
        candidates = [node] if node is not None and node in surveys else [*surveys]
        if any(surveys[name] is None for name in candidates):
            return AttemptStatus(life=ProcessState.UNKNOWN)
        return self._final_statuses.get(lease, AttemptStatus(life=ProcessState.DEAD))

    def stop(
        self,
        lease_id: str,
        handle: Handle | None,
        *,
        trusted: bool = False,
        patience: float = 4.0,
    ) -> bool:
        if trusted:
            return self._local.stop(lease_id, handle, patience=patience)
        gone = True
        running: list[tuple[Node, str, SurveyedContainer]] = []
        surveys = self._surveys()
        groups = members_in(lease_id, surveys) or [lease_id]
        for name, survey in surveys.items():
            if survey is None:
                gone = gone and self._node_of_lease.get(lease_id, name) != name
                continue
            running += [
                (self._nodes[name], group, seen)
                for group in groups
                for seen in survey.get(group, ())
            ]

        def stop(each: tuple[Node, str, SurveyedContainer]) -> bool:
            node, group, seen = each
            return self._stop_container(node, group, seen, patience)

        if len(running) == 1:
            return stop(running[0]) and gone
        with ThreadPoolExecutor(max_workers=MOST_MEMBERS) as threads:
            ended = list(threads.map(stop, running))
        return all(ended) and gone

    def _stop_container(
        self, node: Node, lease_id: str, seen: SurveyedContainer, patience: float
    ) -> bool:
        try:
            ended = container_exit.stop(node.engine, seen, self._memory, patience)
            if ended.life is not ProcessState.DEAD:
                return False
            self._remember_status(lease_id, ended)
            self._learn_packages(lease_id)
            orphans.keep_log(node.engine, seen, self._settings.state)
            node.engine.remove(seen.id)
        except (BackendFailed, Unavailable) as error:
            log.warning("%s: %s", lease_id, error)
            return False
        return True

    def _learn_packages(self, lease_id: str) -> None:
        with self._lock:
            image, folder = self._started.pop(lease_id, ("", Path()))
        if image:
            self._packages.learn(image, folder)

    def _remember_status(self, lease_id: str, status: AttemptStatus) -> None:
        with self._lock:
            self._final_statuses[lease_id] = status
            for old in list(self._final_statuses)[:-_REMEMBERED]:
                del self._final_statuses[old]
                self._node_of_lease.pop(old, None)
                self._started.pop(old, None)

    def release_warm(self) -> None:
        self.warm.release_memory()

    def remove_orphans(self, live: Callable[[], Collection[str]]) -> None:
        duties: list[Callable[[], None]] = []
        for node in self._nodes.values():
            duties += [partial(self._remove_orphans_of, node, live), node.networks.remove_unused]
            if node.engine is self.warm.engine:
                duties.append(self.warm.maintain)
        duties += [self._swarm.refresh_if_old, partial(self._swarm.remove_unused, live)]
        for duty in duties:
            try:
                duty()
            except (BackendFailed, Unavailable) as error:
                log.warning("%s", error)

    def _remove_orphans_of(self, node: Node, live: Callable[[], Collection[str]]) -> None:
        for lease, seen in orphans.orphan_containers(node, live):
            if self._stop_container(node, lease, seen, orphans.PATIENCE):
                log.info("removed the container of %s, which has no lease", lease)

    # -- activity and notices -------------------------------------------------------------

    def wait_for_exit(self, handle: Handle | None) -> None:
        """Do nothing: the next call of ``status`` shows the end."""

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
        return ActivitySample(cpu_seconds=cpu_seconds, devices=self._devices.activity())

    def utilization(self, leases: Mapping[str, Handle | None]) -> UtilizationReading:
        found: dict[str, ProcessReading] = {}
        for node, lease, seen in self._running(leases):
            try:
                reading = node.engine.utilization(seen.id)
            except Unavailable as error:
                log.warning("%s", error)
                continue
            if reading is not None:
                found[lease] = found.get(lease, NO_USE) + reading
        pressure = node_pressure()
        return UtilizationReading(
            leases=found,
            devices=self._devices.readings(),
            pressure={node.name: pressure for node in self._nodes.values() if node.here}
            if pressure is not None
            else {},
        )

    def _running(self, leases: Collection[str]) -> Iterator[tuple[Node, str, SurveyedContainer]]:
        """Yield the running containers of these leases or members, each with the name of those."""
        for name, survey in self._surveys().items():
            for group in survey or ():
                lease = group if group in leases else split_member_id(group)[0]
                if lease in leases and survey is not None and survey[group][0].running:
                    yield self._nodes[name], lease, survey[group][0]

    def request_checkpoint(
        self,
        lease_id: str,
        handle: Handle | None,
        folder: Path,
        notice: StopNotice,
        *,
        trusted: bool = False,
    ) -> None:
        if trusted:
            return self._local.request_checkpoint(lease_id, handle, folder, notice)
        if not notice_file.write(folder, notice, owner=self._jobs.owner):
            return
        for node, lease, seen in self._running((lease_id,)):
            try:
                container_exit.request_checkpoint(node.engine, seen, lease)
            except (BackendFailed, Unavailable) as error:
                log.warning("%s: %s", lease, error)

    def extend(self, lease_id: str, seconds: int, *, trusted: bool = False) -> None:
        """Do nothing: an engine of Docker ends no container by itself."""

    def withdraw_notice(self, folder: Path) -> None:
        notice_file.remove(folder)

    def journal(self, folder: Path) -> Sequence[NewEvent]:
        return read_journal(folder / EVENTS)
