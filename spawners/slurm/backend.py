"""Run attempts as jobs of a Slurm cluster.

Carrel admits, orders and charges; Slurm starts, isolates and ends. A lease names a node and a
number of devices, and the job asks for exactly those; a gang is one job on all its nodes. A
restarted service finds the job of a lease by its comment or its name. An attempt is dead when Slurm
says that its job has ended: Slurm ends all processes of a job before it does.

All state comes from two lists, of jobs and of nodes, which ``SlurmClient`` reads once a cycle.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from ...hub.attempts.journal import read_journal
from ...hub.attempts.output_limits import OutputLimits
from ...hub.attempts.spec import CLAIM, EVENTS
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
from ...hub.records.gangs import member_id, split_member_id
from ...hub.records.images import Image
from ...hub.records.leases import Handle
from ...hub.records.notices import StopNotice
from ...hub.records.utilization import (
    NO_USE,
    DeviceReading,
    ProcessReading,
    UtilizationReading,
)
from ...hub.scheduling.model.snapshot import Device
from ..common import notice_file
from ..common.gang_start import member_name
from ..common.in_flight_starts import InFlightStarts
from ..devices.activity import simulated_activity
from ..local.backend import LocalBackend, job_environment, prepare_attempt, runner_command
from ..local.kernelspecs import installed_kernels
from .batch_script import ask_command, batch_script, job_options
from .client import FRESH_SECONDS, OPERATOR, SlurmClient, options_of
from .container_images import listed_images, with_image
from .devices import job_variables, pool_devices
from .gang_jobs import EXIT, components, gang_options, gang_script, member_status
from .job_meter import read_devices
from .job_states import JobMark, SlurmJob, by_lease
from .times import time_limit

log = logging.getLogger(__name__)

_LADDER: Final = (("INT", 0.5), ("TERM", 0.25), ("KILL", 0.25))
"""The signals in order, with their fraction of the patience."""


def create(settings: BackendSettings) -> SlurmBackend:
    """Entry point (group ``carrel.backends``)."""
    return SlurmBackend(settings)


class SlurmBackend:
    """Runs jobs on a Slurm cluster (``hub.interfaces.backend.Backend``)."""

    name = "slurm"
    keeps_inside = False
    gangs = GangSupport()

    def __init__(
        self,
        settings: BackendSettings,
        *,
        limits: OutputLimits | None = None,
        fresh_seconds: float = FRESH_SECONDS,
    ) -> None:
        self._settings = settings
        self._options = options_of(settings)
        self._limits = limits or OutputLimits()
        self._local = LocalBackend(settings, limits=limits)
        self._starting = InFlightStarts()
        self._images: tuple[Image, ...] | None = None
        self.client = SlurmClient(self._options.conf, fresh_seconds=fresh_seconds)

    # -- the pool -------------------------------------------------------------------------

    def nodes(self) -> tuple[NodeState, ...]:
        """Return the nodes of the partition; none while slurmctld does not answer."""
        try:
            found = self.client.nodes()
        except Unavailable as error:
            log.warning("%s", error)
            return ()
        return tuple(
            NodeState(name=node.name, why_not=node.why_not)
            for node in found
            if node.is_in(self._options.partition)
        )

    def inventory(self) -> tuple[Device, ...]:
        nodes = self.client.nodes()
        pool = [node.name for node in nodes if node.is_in(self._options.partition)]
        self._images = listed_images(self._options, pool)
        return pool_devices(nodes, self.client.jobs(), self._options, self._settings.installation)

    def device_signals(self) -> Mapping[str, DeviceSignals]:
        """Return none: the cluster checks its devices itself."""
        return {}

    def validate_devices(self, devices: Sequence[Device]) -> Mapping[str, ValidationReading]:
        """Return none, as for ``device_signals``."""
        return {}

    def driver_problems(self) -> tuple[DriverProblem, ...]:
        """Return none: Slurm watches the devices of its nodes."""
        return ()

    def images(self) -> tuple[Image, ...] | None:
        """Return the builds of carrel.toml, as of the last inventory; None if it lists none.

        Raises:
            Unavailable: slurmctld has not answered yet.
        """
        if self._options.images and self._images is None:
            raise Unavailable("The cluster has not listed its nodes yet.")
        return self._images

    def kernels(self, home: Path) -> frozenset[str]:
        return installed_kernels(home)

    # -- attempts -------------------------------------------------------------------------

    def start(self, order: LaunchOrder) -> Handle:
        """Submit at most one job per lease: a live one is adopted and gets the new token."""
        if order.trusted:
            return self._local.start(order)
        with self._starting.busy_with(order.lease_id):
            try:
                prepare_attempt(order, self._settings, self._limits)
            except OSError as error:
                raise BackendFailed(f"The job could not be prepared: {error}.") from error
            return self._adopted(order.lease_id, [order]) or self._submit(order)

    def start_gang(self, orders: Sequence[LaunchOrder]) -> Mapping[str, Handle]:
        """Submit at most one job for all members; a live one is adopted, as ``start`` does."""
        lease_id, _ = split_member_id(orders[0].lease_id)
        with self._starting.busy_with(lease_id):
            for order in orders:
                try:
                    prepare_attempt(order, self._settings, self._limits)
                except OSError as error:
                    raise BackendFailed(
                        f"{member_name(order)}: The job could not be prepared: {error}."
                    ) from error
            handle = self._adopted(lease_id, orders) or self._submit_gang(lease_id, orders)
            return dict.fromkeys((order.lease_id for order in orders), handle)

    def _adopted(self, lease_id: str, orders: Sequence[LaunchOrder]) -> Handle | None:
        """Return the handle of the lease's live job. Raises BackendFailed if it has run before."""
        self.client.forget()
        before = self._jobs().get(lease_id)
        if before is not None and not before.has_ended:
            return before.handle
        if any((order.folder / CLAIM).exists() for order in orders):
            raise BackendFailed(f"Attempt {lease_id} has run before and has ended.")
        return None

    def _submit(self, order: LaunchOrder) -> Handle:
        environment = job_environment(
            order, self._settings.state, devices=job_variables(order.devices)
        )
        mark = self._mark(order.lease_id, tuple(device.id for device in order.devices))
        options = with_image(self._options, order.image)
        submitted = self.client.submit(
            job_options(order, mark, options),
            batch_script(runner_command(order.folder), environment, options),
        )
        return self._handle(order.lease_id, submitted)

    def _submit_gang(self, lease_id: str, orders: Sequence[LaunchOrder]) -> Handle:
        for order in orders:
            (order.folder / EXIT).unlink(missing_ok=True)
        parts = components(orders, self._options)
        submitted = self.client.submit(
            gang_options(self._mark(lease_id), parts, orders[0], self._options),
            gang_script(parts, self._settings, self._options),
        )
        return self._handle(lease_id, submitted)

    def _handle(self, lease_id: str, submitted: int) -> Handle:
        """Return the handle of a new job as Slurm lists it: that of a later ``status`` is equal."""
        job = self._jobs().get(lease_id)
        return Handle(pid=submitted, started_at=time.time()) if job is None else job.handle

    def _mark(self, lease: str, devices: tuple[str, ...] = ()) -> JobMark:
        return JobMark(installation=self._settings.installation, lease=lease, devices=devices)

    def _jobs(self) -> dict[str, SlurmJob]:
        """Return the jobs of this installation by lease. Raises Unavailable."""
        return by_lease(self.client.jobs(), self._settings.installation)

    def status(
        self, leases: Mapping[str, Handle | None], *, trusted: Collection[str] = ()
    ) -> Mapping[str, AttemptStatus]:
        starting = self._starting.now()
        local = {lease: handle for lease, handle in leases.items() if lease in trusted}
        found = dict(self._local.status(local)) if local else {}
        others = [lease for lease in leases if lease not in trusted]
        if not others:
            return found
        lease_of = {group: split_member_id(group)[0] for group in others}
        unknown = AttemptStatus(life=ProcessState.UNKNOWN)
        try:
            jobs = self._jobs()
            if any(
                _is_older_than_runner(jobs.get(lease_of[group]), leases[group]) for group in others
            ):
                self.client.forget()
                jobs = self._jobs()
            jobs = self._accounted(set(lease_of.values()), jobs) | jobs
        except Unavailable as error:
            log.warning("%s", error)
            return found | dict.fromkeys(others, unknown)
        for group in others:
            lease, rank = split_member_id(group)
            if lease in starting:
                found[group] = unknown
            elif lease not in jobs:
                found[group] = AttemptStatus(life=ProcessState.DEAD)
            elif rank is None:
                found[group] = jobs[lease].status()
            else:
                found[group] = member_status(jobs[lease], rank)
        return found

    def _accounted(
        self, leases: Collection[str], jobs: Mapping[str, SlurmJob]
    ) -> dict[str, SlurmJob]:
        """Return jobs that slurmctld has forgotten since they ended, in one query."""
        gone = [lease for lease in leases if lease not in jobs]
        if not gone:
            return {}
        try:
            found = self.client.accounted([self._mark(lease).name for lease in gone])
        except BackendFailed:
            return {}  # the cluster keeps no accounts
        return by_lease(found, self._settings.installation)

    def wait_for_exit(self, handle: Handle | None) -> None:
        """Do nothing: the next call of ``status`` shows the end."""

    def activity(self, leases: Mapping[str, Handle | None]) -> ActivitySample:
        """Return the CPU time of leases; that of a session includes its Jupyter server.

        Of devices only the simulated ones: Slurm does not measure the others. Sessions measure
        both themselves (``session_meter``).
        """
        try:
            devices = self.inventory()
        except Unavailable as error:
            log.warning("%s", error)
            devices = ()
        return ActivitySample(
            cpu_seconds={lease: each.cpu_seconds for lease, each in self._usage(leases).items()},
            devices={each.id: simulated_activity(each) for each in devices if each.simulated},
        )

    def utilization(self, leases: Mapping[str, Handle | None]) -> UtilizationReading:
        """Return the use of jobs; their devices are measured by themselves (``job_meter``)."""
        now, devices = time.time(), dict[str, DeviceReading]()
        usage = self._usage(leases)
        with suppress(Unavailable):
            jobs = self._jobs()
            for lease in usage:
                devices |= read_devices(jobs[lease], now) if lease in jobs else {}
        return UtilizationReading(leases=usage, devices=devices)

    def _usage(self, leases: Collection[str]) -> dict[str, ProcessReading]:
        try:
            running = {
                number: lease
                for lease, job in self._jobs().items()
                if lease in leases and not job.has_ended and not job.is_pending
                for number in job.ids
            }
            usage = self.client.usage(list(running))
        except Unavailable as error:
            log.warning("%s", error)
            return {}
        found: dict[str, ProcessReading] = {}
        for job, reading in usage.items():
            found[running[job]] = found.get(running[job], NO_USE) + reading
        return found

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
        ladder = [(name, patience * part) for name, part in _LADDER]
        lease, rank = split_member_id(lease_id)
        try:
            if rank is not None:
                steps = partial(self._steps, lease, rank)
                return self.client.end_steps(steps, ladder)
            return self.client.end(lambda: self._live_jobs(lease), ladder)
        except Unavailable as error:
            log.warning("%s: %s", lease_id, error)
            return False

    def _live_jobs(self, lease_id: str) -> list[SlurmJob]:
        """Return the job of this lease, if it has not ended, as of now."""
        live = self.client.live_jobs(self._settings.installation)
        return [live[lease_id]] if lease_id in live else []

    def _steps(self, lease_id: str, rank: int) -> tuple[str, ...] | None:
        """Return the steps of a member that run; None if none has started yet."""
        for job in self._live_jobs(lease_id):
            if member_status(job, rank).life is not ProcessState.DEAD:
                return self.client.steps(job, member_id(lease_id, rank)) or None
        return ()

    def extend(self, lease_id: str, seconds: int, *, trusted: bool = False) -> None:
        if trusted:
            return
        try:
            self.client.extend(self._live_jobs(lease_id), time_limit(seconds))
        except BackendFailed as error:
            raise BackendFailed(
                f"Slurm does not extend its job: {error.message}",
                accepted="Slurm lets only its operators do so. An administrator can run: "
                f"{OPERATOR}",
            ) from error

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
        if not notice_file.write(folder, notice):
            return
        lease, rank = split_member_id(lease_id)
        try:
            for job in self._live_jobs(lease):
                if not job.is_pending:
                    # On its node, where it can be seen which processes handle the signal.
                    command = ask_command(lease_id, self._settings.state)
                    self.client.run_inside(job, command, rank=rank)
        except (BackendFailed, Unavailable) as error:
            log.warning("%s: %s", lease_id, error)

    def withdraw_notice(self, folder: Path) -> None:
        notice_file.remove(folder)

    def release_warm(self) -> None:
        """Do nothing: this engine keeps nothing warm."""

    def remove_orphans(self, live: Callable[[], Collection[str]]) -> None:
        try:
            jobs = self.client.live_jobs(self._settings.installation)
            kept = live()
            orphans = [job for lease, job in jobs.items() if lease not in kept]
            self.client.signal([job.id for job in orphans])
        except Unavailable as error:
            log.warning("%s", error)
            return
        for job in orphans:
            log.info("cancelled job %d of Slurm, which has no lease", job.id)

    def journal(self, folder: Path) -> Sequence[NewEvent]:
        return read_journal(folder / EVENTS)


def _is_older_than_runner(job: SlurmJob | None, handle: Handle | None) -> bool:
    """Whether a list shows as pending a job whose runner has reported itself already."""
    return job is not None and job.is_pending and handle not in (None, job.handle)
