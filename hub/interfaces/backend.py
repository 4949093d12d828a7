"""The port to a backend, which runs sessions and jobs on leased devices.

Calls may block, so the service makes them in threads. All of them are idempotent. Backends are
found by entry point (group ``carrel.backends``): ``factory(BackendSettings)``.

A gang has one lease and a process group for each member, which has an id of its own
(``records.gangs.member_id``). Methods that take lease ids also take those of members, where a
member is what an attempt is elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, Protocol

from ..records.events import NewEvent
from ..records.gangs import MAX_MEMBERS
from ..records.leases import Handle
from ..records.notices import StopNotice
from ..records.requests import Cause, JobSpec
from ..records.utilization import UtilizationReading
from ..scheduling.model.idleness import DeviceActivity
from ..scheduling.model.snapshot import Device
from .devices import DeviceSignals, DriverProblem, ValidationReading
from .images import ImageSource

MOST_VALIDATION_SECONDS: Final = 45.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GangSupport:
    """What a backend can run of jobs of several members.

    Attributes:
        most_members: of one job; 0 if members cannot reach each other at all.
        across_nodes: whether members on different nodes can reach each other.
        why_one_node: why they cannot, as a sentence; empty where there is one node.
    """

    most_members: int = MAX_MEMBERS
    across_nodes: bool = True
    why_one_node: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeState:
    """The state of one node of a backend that has several.

    Attributes:
        why_not: why nothing can start on the node now, as a sentence; empty if it can.
        ready: number of warm containers for jobs.
    """

    name: str
    why_not: str = ""
    ready: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberOrder:
    """What a member of a gang learns about itself; its runner learns the rest from the service.

    Attributes:
        rank: from 0, over all roles.
        size: number of members.
        number, role_size: rank and number of members within its role.
        output_folder: the folder for output files of the attempt, which all members share.
        subnet: in which the members reach each other, such as ``10.192.12.0/27``; empty if they do
            so at the addresses with which they reach the service.
    """

    rank: int
    size: int
    role: str
    number: int
    role_size: int
    output_folder: Path
    subnet: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOrder:
    """Everything that a backend needs to start one attempt of a job, or one member of a gang.

    Attributes:
        lease_id: of a member, its own id.
        seconds: the time limit.
        token: the token of the attempt; the backend writes it to a file of mode 0600, never to a
            command line.
        folder: the folder of the attempt; the backend and the runner write nowhere else.
        input_path: the submitted notebook.
        home: the owner's home.
        archive_path: the uploaded .tar.gz, if there is one.
        image: ``NAME@sha256:…``; empty on a backend without images.
        node: the node of the lease, on a backend with several.
        group: the group whose course data the attempt may read.
        trusted: whether the attempt runs as the service's account on the service's machine,
            whatever the backend; from ``RequestRecord.trusted``, never derived from an id.
        member: of a gang; None for a job of one member.
    """

    lease_id: str
    request_id: str
    epoch: int
    owner: str
    devices: tuple[Device, ...]
    job: JobSpec
    seconds: int
    token: str
    folder: Path
    input_path: Path
    home: Path
    archive_path: Path | None = None
    image: str = ""
    node: str = ""
    group: str = ""
    trusted: bool = False
    member: MemberOrder | None = None


class ProcessState(StrEnum):
    ALIVE = "alive"
    DEAD = "dead"
    """Confirmed: no process of the lease is left."""
    UNKNOWN = "unknown"
    """The engine did not respond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStatus:
    """The state of the processes of one lease.

    Attributes:
        handle: the oldest process, if one is alive.
        exit_status: of the first process, if the engine saw it exit; negative for a signal.
        cause: why it ended, if the engine knows: it ran out of memory.
        lost: why it ended, as a sentence, where it may be started again: its node failed.
        waiting: why it has not started yet, as a sentence, on an engine with a queue of its own.
        expected_at: when that engine expects its start.
        started_at, ended_at: when its devices were taken and free again, on such an engine; an end
            of 0 if it never took them.
        seen_at: until when it certainly had them, on such an engine, whose answer may be older
            than the question; None if it was seen alive after the question.
    """

    life: ProcessState
    handle: Handle | None = None
    exit_status: int | None = None
    cause: Cause | None = None
    lost: str = ""
    waiting: str = ""
    expected_at: float | None = None
    started_at: float | None = None
    seen_at: float | None = None
    ended_at: float | None = None

    def end(self, *signs: float) -> float:
        """Return when it ended: as the engine says, else its last sign of life."""
        return max(signs) if self.ended_at is None else self.ended_at

    def cluster_end(self, *signs: float) -> float:
        """Return ``end`` for devices that a cluster took; 0 if none did, and nothing is charged."""
        return 0.0 if self.started_at is None else self.end(*signs)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivitySample:
    """CPU time of leases and activity of devices.

    Attributes:
        cpu_seconds: CPU time by lease id, since the first sample of the lease. The Jupyter server
            of a session is not counted, because open browser tabs keep it busy. The value never
            decreases during the life of the backend. Leases without data are missing.
        devices: activity by device id; devices without data are missing.
    """

    cpu_seconds: Mapping[str, float]
    devices: Mapping[str, DeviceActivity]


class Backend(ImageSource, Protocol):
    """A backend with its nodes, devices and processes.

    Attributes:
        keeps_inside: whether the backend can deny a job access to the internet.
        gangs: what it can run of jobs of several members.
    """

    name: str
    keeps_inside: bool

    @property
    def gangs(self) -> GangSupport: ...

    def nodes(self) -> tuple[NodeState, ...]:
        """Return the nodes that devices and leases refer to; empty without nodes but this one."""

    def inventory(self) -> tuple[Device, ...]:
        """Return the devices of all nodes with their current health.

        Those of drivers that fail are missing; ``driver_problems`` names the drivers.

        Raises:
            Unavailable: the engine did not answer.
        """

    def driver_problems(self) -> tuple[DriverProblem, ...]:
        """Return the drivers and plug-ins for devices that failed in the last inventory."""

    def kernels(self, home: Path) -> frozenset[str]:
        """Return the names of the kernel specs that a job with this home can use."""

    def start(self, order: LaunchOrder) -> Handle:
        """Start the first process of an attempt in its own process session.

        Raises:
            BackendFailed: the engine reported an error, and nothing runs.
            Unavailable: the engine did not answer, so the outcome is unknown.
        """

    def start_gang(self, orders: Sequence[LaunchOrder]) -> Mapping[str, Handle]:
        """Start all members of a gang, or none; ``orders`` is by rank.

        Return the handles that are known already, by the id of the member.

        The runners of the members wait for each other, so that they need not start at one time.
        Idempotent as ``start``: members that run are adopted.

        Raises:
            BackendFailed: a member could not be started, and no member runs.
            Unavailable: the engine did not answer, so the outcome is unknown.
        """

    def status(
        self, leases: Mapping[str, Handle | None], *, trusted: Collection[str] = ()
    ) -> Mapping[str, AttemptStatus]:
        """Return the state of the processes of each lease.

        Args:
            leases: the handle by lease id; None if no handle was reported.
            trusted: ids of the leases that were started with ``LaunchOrder.trusted``.
        """

    def wait_for_exit(self, handle: Handle | None) -> None:
        """Return when the first process of an attempt that has ended itself is gone.

        At the latest after a moment: it only saves the next call of ``status`` a delay.
        """

    def activity(self, leases: Mapping[str, Handle | None]) -> ActivitySample:
        """Return the CPU time of these leases and the activity of all devices.

        The counters of leases that are missing from ``leases`` are dropped.
        """

    def utilization(self, leases: Mapping[str, Handle | None]) -> UtilizationReading:
        """Return what the processes of these leases and all devices use.

        Devices are as in the last ``inventory``: the driver is not queried again. The counters of
        leases that are missing from ``leases`` are dropped.
        """

    def device_signals(self) -> Mapping[str, DeviceSignals]:
        """Return the condition of the devices as in the last ``inventory``, by id.

        Devices without data are missing.
        """

    def validate_devices(self, devices: Sequence[Device]) -> Mapping[str, ValidationReading]:
        """Measure devices of one node and model, which nothing uses meanwhile, by id.

        It takes about 20 seconds, and at most ``MOST_VALIDATION_SECONDS``.
        """

    def stop(
        self,
        lease_id: str,
        handle: Handle | None,
        *,
        trusted: bool = False,
        patience: float = 4.0,
    ) -> bool:
        """Stop all processes of the lease: SIGINT, SIGTERM, SIGKILL within ``patience`` seconds.

        Return whether all of them are confirmed dead.
        """

    def extend(self, lease_id: str, seconds: int, *, trusted: bool = False) -> None:
        """Make an engine that ends attempts by itself do so after a longer time limit at most.

        Idempotent; it never shortens the time limit.

        Args:
            seconds: the whole time limit, from the start of the lease.

        Raises:
            BackendFailed: the engine refused it.
            Unavailable: the engine did not answer.
        """

    def request_checkpoint(
        self,
        lease_id: str,
        handle: Handle | None,
        folder: Path,
        notice: StopNotice,
        *,
        trusted: bool = False,
    ) -> None:
        """Notify an attempt of its stop, so that it can save its work, without interrupting it.

        Writes the notice to the folder of the attempt (``CARREL_NOTICE``) and sends SIGUSR1 once
        to the processes that catch it. A session has no such folder; its server gets the notice
        through JupyterHub.
        """

    def withdraw_notice(self, folder: Path) -> None:
        """Delete the notice from the folder of the attempt, if there is one."""

    def release_warm(self) -> None:
        """Stop the warm containers, because JupyterHub is about to start a session."""

    def remove_orphans(self, live: Callable[[], Collection[str]]) -> None:
        """Stop and remove everything that belongs to no live lease, and leftovers of ended ones.

        ``live`` returns the ids of all unreleased leases. It is called after the engine was
        listed: a lease is stored before anything of it starts, so nothing new looks orphaned.
        """

    def journal(self, folder: Path) -> Sequence[NewEvent]:
        """Return the events in the journal of the attempt, whether delivered or not."""
