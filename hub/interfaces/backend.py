"""An engine that runs what a lease allows: local processes now, containers and Slurm later.

Calls may block; the service makes them in threads. All of them are safe to repeat.
Backends are found by entry point (group ``carrel.backends``): ``factory(BackendSettings)``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from ..records.events import NewEvent
from ..records.leases import Handle
from ..records.notices import StopNotice
from ..records.requests import Cause, JobSpec
from ..scheduling.model.idleness import DeviceActivity
from ..scheduling.model.snapshot import Device
from .images import ImageSource


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeState:
    """One machine of an engine that has several.

    Attributes:
        why_not: why nothing can start there now, as a sentence; empty where it can.
        ready: how many containers wait there for jobs.
    """

    name: str
    why_not: str = ""
    ready: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOrder:
    """The data to start one attempt of a job.

    Attributes:
        token: the attempt's own token; it goes into a 0600 file, never on a command line.
        folder: of this attempt; the backend and the runner write here and nowhere else.
        input_path: the notebook as it was submitted.
        home: the owner's home.
        archive_path: the uploaded .tar.gz, None without one.
        image: ``NAME@sha256:…``, empty on an engine without images.
        node: where the lease is, for an engine with several.
        group: whose course data it may read.
        trusted: whether it runs as the service's account on the service's machine, on any engine;
            from ``RequestRecord.trusted``, never from an id.
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


class ProcessState(StrEnum):
    ALIVE = "alive"
    DEAD = "dead"
    """Confirmed: no process of the lease is left."""
    UNKNOWN = "unknown"
    """The engine did not respond; the state of the processes is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStatus:
    """What the engine says of one lease. ``handle`` is its oldest process, if alive."""

    life: ProcessState
    handle: Handle | None = None
    exit_status: int | None = None
    """Where the engine saw the first process end; negative for a signal."""
    cause: Cause | None = None
    """Where the engine knows why it ended: it was killed for memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivitySample:
    """What leases and devices did.

    Attributes:
        cpu_seconds: by lease; what its processes used since the engine was first asked about
            it, without the server of a session itself (open tabs keep that busy). It never
            falls while the engine lives. A lease of which nothing is known is missing.
        devices: by device id; one of which nothing is known is missing.
    """

    cpu_seconds: Mapping[str, float]
    devices: Mapping[str, DeviceActivity]


class Backend(ImageSource, Protocol):
    """One engine.

    Attributes:
        keeps_inside: whether it can keep a job from the internet.
    """

    name: str
    keeps_inside: bool

    def nodes(self) -> tuple[NodeState, ...]:
        """The machines that devices and leases name as theirs; none where it has only this one."""

    def inventory(self) -> tuple[Device, ...]:
        """The devices of this engine's nodes, as they are now (health included)."""

    def kernels(self, home: Path) -> frozenset[str]:
        """Names of the kernel specs that a job with this home can use."""

    def start(self, order: LaunchOrder) -> Handle:
        """Start the attempt's first process in a session of its own.

        Raises:
            BackendFailed: with what the engine said; nothing runs then.
            Unavailable: the engine does not answer, so that nothing is known.
        """

    def status(
        self, leases: Mapping[str, Handle | None], *, trusted: Collection[str] = ()
    ) -> Mapping[str, AttemptStatus]:
        """Report the state of each lease's processes.

        Args:
            leases: the handle by id, None where no handle was reported.
            trusted: the leases whose ``LaunchOrder`` was trusted.
        """

    def activity(self, leases: Mapping[str, Handle | None]) -> ActivitySample:
        """Report what sessions and all devices did; leases not named any more are forgotten."""

    def stop(
        self,
        lease_id: str,
        handle: Handle | None,
        *,
        trusted: bool = False,
        patience: float = 4.0,
    ) -> bool:
        """SIGINT, SIGTERM, SIGKILL to the lease's whole set within ``patience`` seconds.

        Returns True once death is confirmed.
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
        """Notify an attempt that it will be stopped, so that it can save; interrupts nothing.

        Writes the notice into the attempt's folder (``CARREL_NOTICE``) and sends SIGUSR1, once,
        to the processes that catch it. A session has no folder: its server is notified over
        JupyterHub.
        """

    def withdraw_notice(self, folder: Path) -> None:
        """Remove the notice from the attempt's folder, if there is one."""

    def release_warm(self) -> None:
        """Stop warm containers: JupyterHub is about to start a session on this engine."""

    def remove_orphans(self, live: Callable[[], Collection[str]]) -> None:
        """Stop and remove what belongs to no live lease, and what ended leases left behind.

        ``live`` returns the ids of all leases that are not released. It is called after the
        engine was asked: a lease is written before anything of it starts.
        """

    def journal(self, folder: Path) -> Sequence[NewEvent]:
        """The events that the attempt wrote down in its folder, delivered or not."""
