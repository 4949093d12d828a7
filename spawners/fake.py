"""A backend in memory, whose processes start and end under the control of a test or a simulation.

It passes the same contract suite as the real backends.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..hub.errors import BackendFailed, Unavailable
from ..hub.interfaces.backend import (
    ActivitySample,
    AttemptStatus,
    GangSupport,
    LaunchOrder,
    NodeState,
    ProcessState,
)
from ..hub.interfaces.devices import DeviceSignals, DriverProblem, ValidationReading
from ..hub.records.events import NewEvent
from ..hub.records.gangs import split_member_id
from ..hub.records.images import Image
from ..hub.records.json_value import Json
from ..hub.records.leases import Handle
from ..hub.records.notices import StopNotice
from ..hub.records.requests import Cause
from ..hub.records.utilization import (
    DeviceReading,
    NodePressure,
    ProcessReading,
    UtilizationReading,
)
from ..hub.scheduling.model.idleness import ActivityLevel, DeviceActivity
from ..hub.scheduling.model.snapshot import Device, Health
from .common.gang_processes import belongs_to, gang_status
from .common.gang_start import start_members
from .devices.simulated import simulated_devices


@dataclass(slots=True, kw_only=True)
class FakeAttempt:
    """The state of a started attempt.

    Attributes:
        cause: why it ended, if the engine knows.
        stubborn: even SIGKILL does not end it (a process that hangs in a driver).
    """

    order: LaunchOrder
    handle: Handle
    alive: bool = True
    exit_status: int | None = None
    cause: Cause | None = None
    stubborn: bool = False


@dataclass(slots=True, kw_only=True)
class FakeBackend:
    """A pool without processes (``hub.interfaces.backend.Backend``).

    Attributes:
        devices: the result of ``inventory``; replace it, or use ``set_health``.
        clock: returns the start times.
        refuse_starts: unless empty, every start fails with this message.
        silent: the engine does not answer: ``inventory`` raises, ``status`` is unknown and ``stop``
            returns False.
        attempts: all started attempts, by lease id.
        cpu_seconds: CPU seconds in ``activity`` for live attempts, by lease id; 0 by default.
        readings: the leases in ``utilization``, if they are live; others have no data.
        device_readings, pressure: the devices and nodes in ``utilization``.
        signals: the result of ``device_signals``.
        validations: results of ``validate_devices``; other devices are in order.
        notices: the delivered notices, by folder.
        uses: activity of devices in ``activity``; all other devices are simulated.
        machines: the result of ``nodes``.
        problems: the result of ``driver_problems``.
        built: the result of ``images``; None for an engine without images.
        warm_releases: number of calls of ``release_warm``.
        keeps_inside: whether it claims to be able to cut jobs off from the internet.
        gangs: what it claims to be able to run of jobs of several members.
        cluster: statuses beside those of ``attempts``: waits in the queue of a cluster, and its
            times, by lease id.
        refuses_to_extend: unless empty, every extension fails with this message.
        refuse_member: the member of this rank cannot be started; None: all can.
    """

    devices: tuple[Device, ...] = field(default_factory=lambda: simulated_devices("node", 2))
    clock: Callable[[], float] = lambda: 0.0
    name: str = "fake"
    refuse_starts: str = ""
    silent: bool = False
    attempts: dict[str, FakeAttempt] = field(default_factory=dict)
    cpu_seconds: dict[str, float] = field(default_factory=dict)
    uses: dict[str, DeviceActivity] = field(default_factory=dict)
    readings: dict[str, ProcessReading] = field(default_factory=dict)
    device_readings: dict[str, DeviceReading] = field(default_factory=dict)
    pressure: dict[str, NodePressure] = field(default_factory=dict)
    signals: dict[str, DeviceSignals] = field(default_factory=dict)
    validations: dict[str, ValidationReading] = field(default_factory=dict)
    notices: dict[Path, StopNotice] = field(default_factory=dict)
    machines: tuple[NodeState, ...] = ()
    problems: tuple[DriverProblem, ...] = ()
    built: tuple[Image, ...] | None = None
    keeps_inside: bool = False
    gangs: GangSupport = field(default_factory=GangSupport)
    warm_releases: int = 0
    refuse_member: int | None = None
    refuses_to_extend: str = ""
    cluster: dict[str, AttemptStatus] = field(default_factory=dict)
    _events: dict[Path, list[NewEvent]] = field(default_factory=dict)

    # -- called by the service ------------------------------------------------------------

    def nodes(self) -> tuple[NodeState, ...]:
        return self.machines

    def inventory(self) -> tuple[Device, ...]:
        if self.silent:
            raise Unavailable("The engine does not answer.")
        return self.devices

    def device_signals(self) -> Mapping[str, DeviceSignals]:
        return dict(self.signals)

    def validate_devices(self, devices: Sequence[Device]) -> Mapping[str, ValidationReading]:
        return {
            device.id: self.validations.get(device.id, ValidationReading(rates={"compute": 100.0}))
            for device in devices
        }

    def driver_problems(self) -> tuple[DriverProblem, ...]:
        return self.problems

    def images(self) -> tuple[Image, ...] | None:
        if self.silent and self.built is not None:
            raise Unavailable("The engine does not answer.")
        return self.built

    def kernels(self, home: Path) -> frozenset[str]:
        return frozenset({"python3"})

    def start(self, order: LaunchOrder) -> Handle:
        if self.silent:
            raise Unavailable("The engine does not answer.")
        if self.refuse_starts:
            raise BackendFailed(self.refuse_starts)
        if order.member is not None and order.member.rank == self.refuse_member:
            raise BackendFailed("The engine refused it.")
        earlier = self.attempts.get(order.lease_id)
        if earlier is not None and not earlier.alive:
            raise BackendFailed(f"Attempt {order.lease_id} has run before and has ended.")
        if earlier is not None:
            earlier.order = order
            return earlier.handle
        handle = Handle(pid=1000 + len(self.attempts), started_at=self.clock())
        self.attempts[order.lease_id] = FakeAttempt(order=order, handle=handle)
        return handle

    def start_gang(self, orders: Sequence[LaunchOrder]) -> Mapping[str, Handle]:
        return start_members(self, orders)

    def status(
        self, leases: Mapping[str, Handle | None], *, trusted: Collection[str] = ()
    ) -> Mapping[str, AttemptStatus]:
        return {lease: self._status(lease) for lease in leases}

    def _status(self, lease_id: str) -> AttemptStatus:
        if self.silent:
            return AttemptStatus(life=ProcessState.UNKNOWN)
        members = [name for name in self.attempts if split_member_id(name)[0] == lease_id]
        if members and lease_id not in self.attempts:
            return gang_status([self._status(name) for name in members])
        attempt = self.attempts.get(lease_id)
        if lease_id in self.cluster:
            return self.cluster[lease_id]
        if attempt is None:
            return AttemptStatus(life=ProcessState.DEAD)
        if attempt.alive:
            return AttemptStatus(life=ProcessState.ALIVE, handle=attempt.handle)
        return AttemptStatus(
            life=ProcessState.DEAD, exit_status=attempt.exit_status, cause=attempt.cause
        )

    def wait_for_exit(self, handle: Handle | None) -> None:
        """Do nothing: the next call of ``status`` shows the end."""

    def activity(self, leases: Mapping[str, Handle | None]) -> ActivitySample:
        if self.silent:
            return ActivitySample(cpu_seconds={}, devices={})
        alive = [lease for lease in leases if self._status(lease).life is ProcessState.ALIVE]
        simulated = {
            device.id: DeviceActivity(name=device.id, use=ActivityLevel.NOT_MEASURED)
            for device in self.devices
        }
        return ActivitySample(
            cpu_seconds={lease: self.cpu_seconds.get(lease, 0.0) for lease in alive},
            devices=simulated | self.uses,
        )

    def utilization(self, leases: Mapping[str, Handle | None]) -> UtilizationReading:
        alive = {name for name in leases if self._status(name).life is ProcessState.ALIVE}
        return UtilizationReading(
            leases={name: found for name, found in self.readings.items() if name in alive},
            devices=dict(self.device_readings),
            pressure=dict(self.pressure),
        )

    def stop(
        self,
        lease_id: str,
        handle: Handle | None,
        *,
        trusted: bool = False,
        patience: float = 4.0,
    ) -> bool:
        if self.silent:
            return False
        members = [name for name in self.attempts if split_member_id(name)[0] == lease_id]
        if members and lease_id not in self.attempts:
            ended = [self.stop(name, None) for name in members]
            return all(ended)
        attempt = self.attempts.get(lease_id)
        if attempt is None or not attempt.alive:
            return True
        if attempt.stubborn:
            return False
        self.end(lease_id, exit_status=-2)
        return True

    def request_checkpoint(
        self,
        lease_id: str,
        handle: Handle | None,
        folder: Path,
        notice: StopNotice,
        *,
        trusted: bool = False,
    ) -> None:
        self.notices[folder] = notice

    def extend(self, lease_id: str, seconds: int, *, trusted: bool = False) -> None:
        if self.refuses_to_extend:
            raise BackendFailed(self.refuses_to_extend)

    def withdraw_notice(self, folder: Path) -> None:
        self.notices.pop(folder, None)

    def release_warm(self) -> None:
        self.warm_releases += 1

    def remove_orphans(self, live: Callable[[], Collection[str]]) -> None:
        """End the attempts without a live lease."""
        known = () if self.silent else live()
        for lease, attempt in self.attempts.items():
            if attempt.alive and not self.silent and not belongs_to(lease, known):
                self.end(lease, exit_status=-9)

    def journal(self, folder: Path) -> Sequence[NewEvent]:
        return tuple(self._events.get(folder, ()))

    # -- called by tests and simulations --------------------------------------------------

    def end(
        self, lease_id: str, *, exit_status: int | None = None, cause: Cause | None = None
    ) -> None:
        """End the attempt's processes, as if they had ended by themselves."""
        attempt = self.attempts[lease_id]
        attempt.alive = False
        attempt.exit_status = exit_status
        attempt.cause = cause

    def report(self, lease_id: str, kind: str, data: Mapping[str, Json], *, at: float) -> NewEvent:
        """Write an event into the attempt's journal, without delivering it."""
        events = self._events.setdefault(self.attempts[lease_id].order.folder, [])
        events.append(NewEvent(seq=len(events) + 1, at=at, kind=kind, data=data))
        return events[-1]

    def set_health(self, device_id: str, health: Health, why: str = "") -> None:
        """Set the health of a device in the next inventory."""
        self.devices = tuple(
            replace(device, health=health, why=why) if device.id == device_id else device
            for device in self.devices
        )
