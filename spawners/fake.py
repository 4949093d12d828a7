"""An engine in memory, whose processes live and die as a test or a simulation says.

It passes the same contract suite as the real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..hub.errors import BackendFailed, Unavailable
from ..hub.interfaces.backend import (
    ActivitySample,
    AttemptStatus,
    LaunchOrder,
    NodeState,
    ProcessState,
)
from ..hub.records.events import NewEvent
from ..hub.records.images import Image
from ..hub.records.json_value import Json
from ..hub.records.leases import Handle
from ..hub.records.notices import StopNotice
from ..hub.records.requests import Cause
from ..hub.scheduling.model.idleness import ActivityLevel, DeviceActivity
from ..hub.scheduling.model.snapshot import Device, Health
from .devices.simulated import simulated_devices


@dataclass(slots=True, kw_only=True)
class FakeAttempt:
    """What became of one start.

    Attributes:
        cause: why it ended, where the engine knows it.
        stubborn: not even SIGKILL ends it (a process that hangs in a driver).
    """

    order: LaunchOrder
    handle: Handle
    alive: bool = True
    exit_status: int | None = None
    cause: Cause | None = None
    stubborn: bool = False


@dataclass(slots=True, kw_only=True)
class FakeBackend:
    """A pool without processes (``hub.ports.backend.Backend``).

    Attributes:
        devices: what ``inventory`` answers; replace it, or use ``set_health``.
        clock: gives the start times.
        refuse_starts: the sentence with which every start fails, while it is not empty.
        silent: the engine does not answer: ``inventory`` raises, ``status`` knows nothing and
            ``stop`` confirms nothing.
        attempts: every start so far, by lease id.
        cpu_seconds: what ``activity`` answers for living attempts, by lease id; 0 by default.
        notices: what attempts were told, by folder.
        uses: what it answers for devices; those not named are simulated.
        machines: what ``nodes`` answers.
        built: the images it has; None for an engine without images.
        made_room: how often it was told that a session is about to start.
        keeps_inside: whether it says that it can keep a job from the internet.
    """

    devices: tuple[Device, ...] = field(default_factory=lambda: simulated_devices("node", 2))
    clock: Callable[[], float] = lambda: 0.0
    name: str = "fake"
    refuse_starts: str = ""
    silent: bool = False
    attempts: dict[str, FakeAttempt] = field(default_factory=dict)
    cpu_seconds: dict[str, float] = field(default_factory=dict)
    uses: dict[str, DeviceActivity] = field(default_factory=dict)
    notices: dict[Path, StopNotice] = field(default_factory=dict)
    machines: tuple[NodeState, ...] = ()
    built: tuple[Image, ...] | None = None
    keeps_inside: bool = False
    made_room: int = 0
    _events: dict[Path, list[NewEvent]] = field(default_factory=dict)

    # -- what the service calls -----------------------------------------------------------

    def nodes(self) -> tuple[NodeState, ...]:
        return self.machines

    def inventory(self) -> tuple[Device, ...]:
        if self.silent:
            raise Unavailable("The engine does not answer.")
        return self.devices

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
        earlier = self.attempts.get(order.lease_id)
        if earlier is not None and not earlier.alive:
            raise BackendFailed(f"Attempt {order.lease_id} has been run before and has ended.")
        if earlier is not None:
            earlier.order = order
            return earlier.handle
        handle = Handle(pid=1000 + len(self.attempts), started_at=self.clock())
        self.attempts[order.lease_id] = FakeAttempt(order=order, handle=handle)
        return handle

    def status(self, leases: Mapping[str, Handle | None]) -> Mapping[str, AttemptStatus]:
        return {lease: self._look(lease) for lease in leases}

    def _look(self, lease_id: str) -> AttemptStatus:
        if self.silent:
            return AttemptStatus(life=ProcessState.UNKNOWN)
        attempt = self.attempts.get(lease_id)
        if attempt is None:
            return AttemptStatus(life=ProcessState.DEAD)
        if attempt.alive:
            return AttemptStatus(life=ProcessState.ALIVE, handle=attempt.handle)
        return AttemptStatus(
            life=ProcessState.DEAD, exit_status=attempt.exit_status, cause=attempt.cause
        )

    def activity(self, leases: Mapping[str, Handle | None]) -> ActivitySample:
        if self.silent:
            return ActivitySample(cpu_seconds={}, devices={})
        alive = [lease for lease in leases if self._look(lease).life is ProcessState.ALIVE]
        pretended = {
            each.id: DeviceActivity(name=each.id, use=ActivityLevel.NOT_MEASURED)
            for each in self.devices
        }
        return ActivitySample(
            cpu_seconds={lease: self.cpu_seconds.get(lease, 0.0) for lease in alive},
            devices=pretended | self.uses,
        )

    def stop(self, lease_id: str, handle: Handle | None, *, patience: float = 4.0) -> bool:
        if self.silent:
            return False
        attempt = self.attempts.get(lease_id)
        if attempt is None or not attempt.alive:
            return True
        if attempt.stubborn:
            return False
        self.end(lease_id, exit_status=-2)
        return True

    def request_checkpoint(
        self, lease_id: str, handle: Handle | None, folder: Path, notice: StopNotice
    ) -> None:
        self.notices[folder] = notice

    def withdraw_notice(self, folder: Path) -> None:
        self.notices.pop(folder, None)

    def release_warm(self) -> None:
        self.made_room += 1

    def remove_orphans(self, live: Callable[[], Collection[str]]) -> None:
        """End what no lease knows."""
        known = () if self.silent else live()
        for lease, attempt in self.attempts.items():
            if attempt.alive and not self.silent and lease not in known:
                self.end(lease, exit_status=-9)

    def journal(self, folder: Path) -> Sequence[NewEvent]:
        return tuple(self._events.get(folder, ()))

    # -- what a test or a simulation calls ------------------------------------------------

    def end(self, lease_id: str, *, exit_status: int = 0, cause: Cause | None = None) -> None:
        """The attempt's processes end by themselves."""
        attempt = self.attempts[lease_id]
        attempt.alive = False
        attempt.exit_status = exit_status
        attempt.cause = cause

    def report(self, lease_id: str, kind: str, data: Mapping[str, Json], *, at: float) -> NewEvent:
        """The attempt writes an event into its journal (and delivers nothing)."""
        events = self._events.setdefault(self.attempts[lease_id].order.folder, [])
        events.append(NewEvent(seq=len(events) + 1, at=at, kind=kind, data=data))
        return events[-1]

    def set_health(self, device_id: str, health: Health, why: str = "") -> None:
        """What the next inventory says of a device."""
        self.devices = tuple(
            replace(device, health=health, why=why) if device.id == device_id else device
            for device in self.devices
        )
