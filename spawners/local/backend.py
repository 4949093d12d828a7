"""Run jobs as runner processes on this machine, each in its own process session.

A runner outlives the service that started it. A restarted service finds it by the lease id in its
environment and by the attempt's folder.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

import psutil

from ...hub.attempts.journal import DISK_FULL, read_journal
from ...hub.attempts.output_limits import OutputLimits
from ...hub.attempts.spec import (
    CLAIM,
    EVENTS,
    FILES,
    LOG,
    NOTICE,
    PROGRESS,
    REPORTS,
    SAVED,
    AttemptSpec,
)
from ...hub.errors import BackendFailed, Unavailable
from ...hub.interfaces.backend import (
    MOST_VALIDATION_SECONDS,
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
from ...hub.records.leases import Handle
from ...hub.records.notices import StopNotice
from ...hub.records.utilization import DeviceReading, ProcessReading, UtilizationReading
from ...hub.scheduling.model.idleness import DeviceActivity
from ...hub.scheduling.model.snapshot import Device
from ..common import notice_file
from ..common.course_links import course_data
from ..common.gang_processes import belongs_to
from ..common.gang_start import member_spec, start_members
from ..common.in_flight_starts import InFlightStarts
from ..devices.activity import (
    ProcessCpuMeter,
    RunDelayMeter,
    device_activity,
    device_readings,
    device_signals,
    resident_bytes,
    simulated_activity,
    simulated_signals,
)
from ..devices.environment import device_environment, readable
from ..devices.foreign_processes import ForeignProcesses
from ..devices.inventory import DeviceInventory
from ..devices.pressure import node_pressure
from ..devices.simulated import read_faults, simulated_devices
from ..devices.validation import run_validation, simulated_validation
from ..processes import lease_processes
from ..runner.kernels.fork_client import ForkedProcess
from .kernelspecs import installed_kernels
from .warm_processes import RUNNER, WarmProcesses

KEPT_VARIABLES: Final = frozenset(
    {
        "CONDA_DEFAULT_ENV",
        "CONDA_PREFIX",
        "CONDA_ROOT",
        "JUPYTER_PATH",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "LD_LIBRARY_PATH",
        "PATH",
        "PYTHONPATH",
        "REQUESTS_CA_BUNDLE",
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
        "TMPDIR",
        "TZ",
        "VIRTUAL_ENV",
    }
)
"""Variables that a job inherits from the service; any other may contain a secret."""
MEMORY_VARIABLE: Final = "CARREL_MEMORY_BYTES"
"""The job's memory limit, which no control group tells it here."""
_REMEMBERED = 1000
_EXIT_SECONDS: Final = 1.0
_START_SECONDS: Final = 1.0
_START_POLL_SECONDS: Final = 0.002

log = logging.getLogger(__name__)


def create(settings: BackendSettings) -> LocalBackend:
    """Entry point (group ``carrel.backends``)."""
    return LocalBackend(settings, warm=True)


def _wait_for_lease(process: psutil.Process) -> None:
    """Wait until a scan finds a new process: its environment shows its lease a moment later.

    That of a program started by exec as well: Linux closes the pipe that tells of a successful exec
    before it sets where /proc finds the new environment (``begin_new_exec``, fs/exec.c).
    """
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and lease_processes.alive(process):
        if lease_processes.lease_of_environment(process.pid):
            return
        time.sleep(_START_POLL_SECONDS)


class LocalBackend:
    """Runs jobs as processes of the service's account (``hub.interfaces.backend.Backend``)."""

    name = "local"
    keeps_inside = False
    gangs = GangSupport()

    def __init__(
        self,
        settings: BackendSettings,
        *,
        node: str = "",
        limits: OutputLimits | None = None,
        warm: bool = False,
    ) -> None:
        self._settings = settings
        self._limits = limits or OutputLimits()
        self._node = node or socket.gethostname()
        self._lock = threading.Lock()
        self._children: dict[str, subprocess.Popen[bytes] | ForkedProcess] = {}
        self._warm = WarmProcesses(settings.state / "fork", settings.state) if warm else None
        self._starting = InFlightStarts()
        self._meter = ProcessCpuMeter()
        self._utilization_meter = ProcessCpuMeter()
        self._run_delays = RunDelayMeter()
        self._device_readings: Mapping[str, DeviceReading] = {}
        self._signals: Mapping[str, DeviceSignals] = {}
        self._foreign = ForeignProcesses()
        self._devices = DeviceInventory(self._node)
        self._reason = ""
        self._problems: tuple[DriverProblem, ...] = ()

    # -- devices --------------------------------------------------------------------------

    def inventory(self) -> tuple[Device, ...]:
        """Return this machine's devices, without those of drivers that fail."""
        if self._settings.simulated_devices is not None:
            faults = read_faults(self._settings.state)
            devices = simulated_devices(self._node, self._settings.simulated_devices, faults)
            self._signals = simulated_signals(devices, faults)
            return devices
        inventory = self._devices.read()
        self._problems = inventory.problems
        self._signals = device_signals(inventory.found)
        self._device_readings = device_readings(inventory.found)
        if inventory.reason != self._reason:
            self._reason = inventory.reason
            log.info("devices: %s", inventory.reason or "all are listed again")
        return self._foreign.with_busy_marked(inventory.found)

    def driver_problems(self) -> tuple[DriverProblem, ...]:
        return self._problems

    def device_signals(self) -> Mapping[str, DeviceSignals]:
        return self._signals

    def validate_devices(self, devices: Sequence[Device]) -> Mapping[str, ValidationReading]:
        if self._settings.simulated_devices is not None:
            return simulated_validation(devices, read_faults(self._settings.state))
        kept = {name: value for name, value in os.environ.items() if name in KEPT_VARIABLES}
        environment = {**kept, **device_environment(devices)}
        return run_validation(devices, environment, MOST_VALIDATION_SECONDS)

    def nodes(self) -> tuple[NodeState, ...]:
        """Return none: this machine is the only node."""
        return ()

    def images(self) -> None:
        """Return None: this engine has no images."""

    def kernels(self, home: Path) -> frozenset[str]:
        return installed_kernels(home)

    # -- attempts -------------------------------------------------------------------------

    def start(self, order: LaunchOrder) -> Handle:
        """Start at most one runner per lease: a live one is adopted and gets the new token."""
        with self._starting.busy_with(order.lease_id):
            try:
                environment = job_environment(order, self._settings.state)
                job, warm = order.job, self._warm
                fork_server = (
                    warm.kernel_server(order.owner, environment, job.memory_bytes)
                    if warm and not job.command
                    else ""
                )
                prepare_attempt(order, self._settings, self._limits, fork_server=fork_server)
                running = self._oldest(order.lease_id)
                if running is not None:
                    return running
                if (order.folder / CLAIM).exists():
                    raise BackendFailed(f"Attempt {order.lease_id} has run before and has ended.")
                return self._launch(order, environment)
            except OSError as error:
                if error.errno in DISK_FULL:
                    raise Unavailable(f"The runner could not be started: {error}.") from error
                raise BackendFailed(f"The runner could not be started: {error}.") from error

    def start_gang(self, orders: Sequence[LaunchOrder]) -> Mapping[str, Handle]:
        return start_members(self, orders)

    def _launch(self, order: LaunchOrder, environment: Mapping[str, str]) -> Handle:
        folder = str(order.folder.resolve())
        descriptor = os.open(order.folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            forked = self._warm and self._warm.fork_runner([folder], environment, descriptor)
            child = forked or subprocess.Popen(
                runner_command(order.folder),
                stdin=subprocess.DEVNULL,
                stdout=descriptor,
                stderr=descriptor,
                cwd=order.home,
                env=environment,
                start_new_session=True,
            )
        finally:
            os.close(descriptor)
        with self._lock:
            self._children[order.lease_id] = child
            self._forget_oldest()
        try:
            # Works also for a child that has already ended, because it is not reaped yet.
            process = psutil.Process(child.pid)
            _wait_for_lease(process)
            return lease_processes.handle_of(process)
        except psutil.NoSuchProcess:
            return Handle(pid=child.pid, started_at=time.time())  # the server has reaped its fork

    def status(
        self, leases: Mapping[str, Handle | None], *, trusted: Collection[str] = ()
    ) -> Mapping[str, AttemptStatus]:
        """Return the status of leases; scans /proc only for leases whose first process ended."""
        starting = self._starting.now()
        statuses: dict[str, AttemptStatus] = {}
        for lease in leases:
            handle = leases[lease]
            if lease in starting:
                statuses[lease] = AttemptStatus(life=ProcessState.UNKNOWN)
            elif lease_processes.find(handle, state=self._settings.state) is not None:
                statuses[lease] = AttemptStatus(life=ProcessState.ALIVE, handle=handle)
        missing = {lease: handle for lease, handle in leases.items() if lease not in statuses}
        if missing:
            statuses.update(self._search(missing))
        return statuses

    def _processes(
        self, leases: Mapping[str, Handle | None]
    ) -> dict[str, list[psutil.Process]] | None:
        """Return the processes of each lease; None if they cannot be listed."""
        try:
            return lease_processes.scan(leases, state=self._settings.state)
        except OSError as error:
            log.warning("processes cannot be listed: %s", error)
            return None

    def _search(self, leases: Mapping[str, Handle | None]) -> dict[str, AttemptStatus]:
        found = self._processes(leases)
        if found is None:
            return {lease: AttemptStatus(life=ProcessState.UNKNOWN) for lease in leases}
        statuses = {}
        for lease, members in found.items():
            handle = lease_processes.oldest(members)
            statuses[lease] = AttemptStatus(
                life=ProcessState.ALIVE if handle else ProcessState.DEAD,
                handle=handle,
                exit_status=self._exit_status(lease),
            )
        return statuses

    def wait_for_exit(self, handle: Handle | None) -> None:
        process = lease_processes.find(handle, state=self._settings.state)
        if process is not None:
            lease_processes.wait_gone([process], time.monotonic() + _EXIT_SECONDS)

    def activity(self, leases: Mapping[str, Handle | None]) -> ActivitySample:
        self._meter.forget_others(leases)
        cpu_seconds = {
            lease: self._meter.read(lease, members, leases[lease])
            for lease, members in (self._processes(leases) or {}).items()
            if members
        }
        return ActivitySample(cpu_seconds=cpu_seconds, devices=self._device_activity())

    def _device_activity(self) -> dict[str, DeviceActivity]:
        if self._settings.simulated_devices is not None:
            simulated = simulated_devices(self._node, self._settings.simulated_devices)
            return {device.id: simulated_activity(device) for device in simulated}
        found = self._devices.read().found
        return {detected.device.id: device_activity(detected) for detected in found}

    def utilization(self, leases: Mapping[str, Handle | None]) -> UtilizationReading:
        self._utilization_meter.forget_others(leases)
        self._run_delays.forget_others(leases)
        found = {
            lease: ProcessReading(
                cpu_seconds=self._utilization_meter.read(lease, members, None),
                memory_bytes=resident_bytes(members),
                waiting_seconds=self._run_delays.read(lease, members),
            )
            for lease, members in (self._processes(leases) or {}).items()
            if members
        }
        pressure = node_pressure()
        return UtilizationReading(
            leases=found,
            devices=self._device_readings,
            pressure={} if pressure is None else {self._node: pressure},
        )

    def stop(
        self,
        lease_id: str,
        handle: Handle | None,
        *,
        trusted: bool = False,
        patience: float = 4.0,
    ) -> bool:
        try:
            ended = lease_processes.stop_set(lease_id, handle, patience, state=self._settings.state)
        except OSError as error:
            log.warning("processes cannot be listed: %s", error)
            return False
        self._exit_status(lease_id)
        return ended

    def request_checkpoint(
        self,
        lease_id: str,
        handle: Handle | None,
        folder: Path,
        notice: StopNotice,
        *,
        trusted: bool = False,
    ) -> None:
        if not notice_file.write(folder, notice):
            return
        try:
            lease_processes.ask(lease_id, handle, signal.SIGUSR1, state=self._settings.state)
        except OSError as error:
            log.warning("processes cannot be listed: %s", error)

    def extend(self, lease_id: str, seconds: int, *, trusted: bool = False) -> None:
        """Do nothing: nothing but the service ends a process at its time limit."""

    def withdraw_notice(self, folder: Path) -> None:
        notice_file.remove(folder)

    def release_warm(self) -> None:
        """Do nothing: this engine has no warm containers."""

    def remove_orphans(self, live: Callable[[], Collection[str]]) -> None:
        """Do nothing: a process that has ended leaves nothing behind."""

    def journal(self, folder: Path) -> Sequence[NewEvent]:
        return read_journal(folder / EVENTS)

    def close(self) -> None:
        """End the fork servers; jobs continue."""
        if self._warm is not None:
            self._warm.close()

    # -- private --------------------------------------------------------------------------

    def _oldest(self, lease_id: str) -> Handle | None:
        found = lease_processes.scan({lease_id: None}, state=self._settings.state)
        return lease_processes.oldest(found[lease_id])

    def _exit_status(self, lease_id: str) -> int | None:
        """Return the exit status of a runner that has ended; reap it, and those of its members."""
        with self._lock:
            own = [(name, c) for name, c in self._children.items() if belongs_to(name, (lease_id,))]
        return {name: child.poll() for name, child in own}.get(lease_id)

    def _forget_oldest(self) -> None:
        for lease, child in list(self._children.items())[:-_REMEMBERED]:
            if child.poll() is not None:
                del self._children[lease]


def prepare_attempt(
    order: LaunchOrder, settings: BackendSettings, limits: OutputLimits, *, fork_server: str = ""
) -> None:
    """Create the folder of an attempt, with the order for its runner in it.

    Args:
        fork_server: path of the socket of a fork server for the owner's kernels; empty without.

    Raises:
        OSError: the folder cannot be created or written.
    """
    order.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if order.member is not None:
        order.member.output_folder.mkdir(exist_ok=True, mode=0o700)
    AttemptSpec(
        lease_id=order.lease_id,
        request_id=order.request_id,
        epoch=order.epoch,
        token=order.token,
        service_url=settings.service_url,
        input_path=str(order.input_path.resolve()),
        home=str(order.home.resolve()),
        devices=tuple(readable(device) for device in order.devices),
        device_ids=tuple(device.id for device in order.devices),
        job=order.job,
        fork_server=fork_server,
        archive_path=str(order.archive_path.resolve()) if order.archive_path else "",
        member=member_spec(order),
        limits=limits,
    ).write(order.folder)


def runner_command(folder: Path) -> tuple[str, ...]:
    """Return the command that runs the attempt in a folder, with the Python of the service."""
    return (sys.executable, "-P", "-m", RUNNER, str(folder.resolve()))


def job_environment(
    order: LaunchOrder, state: Path, *, devices: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return a clean environment that names the lease and exactly its devices.

    Args:
        devices: variables for the devices, from an engine that chooses them itself.
    """
    kept = {name: value for name, value in os.environ.items() if name in KEPT_VARIABLES}
    programs = str(Path(sys.executable).parent)  # kernels are installed beside this Python
    home = str(order.home.resolve())
    files = order.folder / FILES if order.member is None else order.member.output_folder
    return {
        **kept,
        "PATH": os.pathsep.join([programs, kept.get("PATH", os.defpath)]),
        "HOME": home,
        "USER": order.owner,
        "LOGNAME": order.owner,
        **(device_environment(order.devices) if devices is None else devices),
        lease_processes.LEASE_VARIABLE: order.lease_id,
        "CARREL_REQUEST": order.request_id,
        "CARREL_OUTPUT_DIR": str(files.resolve()),
        "CARREL_PROGRESS": str(order.folder.resolve() / PROGRESS),
        "CARREL_REPORTS": str(order.folder.resolve() / REPORTS),
        "CARREL_NOTICE": str(order.folder.resolve() / NOTICE),
        "CARREL_SAVED": str(order.folder.resolve() / SAVED),
        **({MEMORY_VARIABLE: str(memory)} if (memory := order.job.memory_bytes) else {}),
        **course_data(state, order.group),
        # `carrel down` finds the processes of its installation by this.
        "CARREL_STATE": str(state),
    }
