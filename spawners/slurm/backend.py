"""Run attempts as jobs of a Slurm cluster.

Carrel admits, orders and charges; Slurm starts, isolates and ends. A lease names a node and a
number of devices, and the job asks for exactly those. A restarted service finds the job of a lease
by its comment or its name. An attempt is dead when Slurm says that its job has ended: Slurm ends
all processes of a job before it does.

All state comes from two lists, of jobs and of nodes, which ``SlurmClient`` reads once a cycle.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
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
from ...hub.interfaces.devices import DriverProblem
from ...hub.records.events import NewEvent
from ...hub.records.gangs import split_member_id
from ...hub.records.leases import Handle
from ...hub.records.notices import StopNotice
from ...hub.records.utilization import NO_USE, ProcessReading, UtilizationReading
from ...hub.scheduling.model.snapshot import Device
from ..common import notice_file
from ..common.gang_processes import belongs_to, gang_status, members_in
from ..common.gang_start import start_members
from ..common.in_flight_starts import InFlightStarts
from ..devices.activity import simulated_activity
from ..local.backend import LocalBackend, job_environment, prepare_attempt, runner_command
from ..local.kernelspecs import installed_kernels
from .batch_script import ask_command, batch_script, job_options, time_limit
from .client import FRESH_SECONDS, OPERATOR, SlurmClient, options_of
from .devices import device_variables, pool_devices
from .job_states import JobMark, SlurmJob, by_lease

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
        return pool_devices(
            self.client.nodes(), self.client.jobs(), self._options, self._settings.installation
        )

    def driver_problems(self) -> tuple[DriverProblem, ...]:
        """Return none: Slurm watches the devices of its nodes."""
        return ()

    def images(self) -> None:
        """Return None: this engine has no images."""

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
            self.client.forget()
            before = self._jobs().get(order.lease_id)
            if before is not None and not before.has_ended:
                return before.handle
            if (order.folder / CLAIM).exists():
                raise BackendFailed(f"Attempt {order.lease_id} has run before and has ended.")
            return self._submit(order)

    def start_gang(self, orders: Sequence[LaunchOrder]) -> Mapping[str, Handle]:
        return start_members(self, orders)

    def _submit(self, order: LaunchOrder) -> Handle:
        environment = job_environment(
            order, self._settings.state, devices=device_variables(order.devices)
        )
        mark = self._mark(order.lease_id, tuple(device.id for device in order.devices))
        submitted = self.client.submit(
            job_options(order, mark, self._options),
            batch_script(runner_command(order.folder), environment, self._options.prologue),
        )
        # As Slurm lists it: the handle of a later ``status`` is the same.
        job = self._jobs().get(order.lease_id)
        return Handle(pid=submitted, started_at=time.time()) if job is None else job.handle

    def _mark(self, lease: str, devices: tuple[str, ...] = ()) -> JobMark:
        return JobMark(installation=self._settings.installation, lease=lease, devices=devices)

    def _jobs(self) -> dict[str, SlurmJob]:
        """Return the jobs of this installation by lease or member. Raises Unavailable."""
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
        unknown = AttemptStatus(life=ProcessState.UNKNOWN)
        try:
            jobs = self._jobs()
            if any(_is_older_than_runner(jobs.get(group), leases[group]) for group in others):
                self.client.forget()
                jobs = self._jobs()
            jobs = self._accounted(others, jobs) | jobs
        except Unavailable as error:
            log.warning("%s", error)
            return found | dict.fromkeys(others, unknown)
        for lease in others:
            groups = members_in(lease, {"": jobs}) or [lease]
            if lease in starting:
                found[lease] = unknown
            elif groups != [lease]:
                found[lease] = gang_status([jobs[group].status() for group in groups])
            elif lease in jobs:
                found[lease] = jobs[lease].status()
            else:
                found[lease] = AttemptStatus(life=ProcessState.DEAD)
        return found

    def _accounted(
        self, leases: Collection[str], jobs: Mapping[str, SlurmJob]
    ) -> dict[str, SlurmJob]:
        """Return jobs that slurmctld has forgotten since they ended, in one query."""
        gone = [
            lease for lease in leases if not members_in(lease, {"": jobs}) and lease not in jobs
        ]
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
        return UtilizationReading(leases=self._usage(leases), devices={})

    def _usage(self, leases: Collection[str]) -> dict[str, ProcessReading]:
        try:
            running = {
                job.id: group if group in leases else split_member_id(group)[0]
                for group, job in self._jobs().items()
                if belongs_to(group, leases) and not job.has_ended and not job.is_pending
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
        try:
            ladder = [(name, patience * part) for name, part in _LADDER]
            return self.client.end(lambda: self._live_jobs([lease_id]), ladder)
        except Unavailable as error:
            log.warning("%s: %s", lease_id, error)
            return False

    def _live_jobs(self, leases: Collection[str]) -> list[SlurmJob]:
        """Return the jobs of these leases, or of members, that have not ended, as of now."""
        live = self.client.live_jobs(self._settings.installation)
        return [job for group, job in live.items() if belongs_to(group, leases)]

    def extend(self, lease_id: str, seconds: int, *, trusted: bool = False) -> None:
        if trusted:
            return
        try:
            self.client.extend(self._live_jobs([lease_id]), time_limit(seconds))
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
        try:
            for job in self._live_jobs([lease_id]):
                if not job.is_pending and job.mark is not None:
                    # On its node, where it can be seen which processes handle the signal.
                    self.client.run_inside(
                        job.id, ask_command(job.mark.lease, self._settings.state)
                    )
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
            orphans = [job for group, job in jobs.items() if not belongs_to(group, kept)]
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
