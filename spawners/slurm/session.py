"""Sessions as jobs of a Slurm cluster: batchspawner's ``SlurmSpawner`` on a lease.

The options of ``SlurmSpawner`` stay: its template of the batch script, prologue, epilogue and
``req_options``. What the lease decides stands on the command line of ``sbatch``, which no template
can change: node, devices, time limit, name and comment. The state of all sessions comes from one
list of jobs (``client``), instead of one query for each.
"""

from __future__ import annotations

import asyncio
import shlex
import sys
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import cache
from pathlib import Path

from batchspawner.batchspawner import JobStatus, SlurmSpawner, format_template
from traitlets import Instance, default

from ...hub.errors import BackendFailed, Unavailable
from ...hub.interfaces.backend_settings import BackendSettings, SlurmOptions
from ...hub.interfaces.session_meter import VARIABLE
from ...hub.schemas import LeaseOut, StartedIn
from ..sessions.host_session import HostSession
from ..sessions.lease_options import devices_of
from ..sessions.readiness import Address, ServerDied
from .batch_script import lease_options, prologue_lines
from .client import SlurmClient, options_of
from .container_images import with_image
from .devices import device_variables
from .job_states import JobMark, SlurmJob

__all__ = ["SlurmSession"]

_END_SECONDS = 10.0
_TEMPLATE = """#!/bin/sh
{% if options %}#SBATCH {{options}}
{% endif %}{% if reservation %}#SBATCH --reservation={{reservation}}
{% endif %}{{prologue}}
{% if epilogue %}{{cmd}}
{{epilogue}}{% else %}exec {{cmd}}{% endif %}
"""


@cache
def _client(conf: str) -> SlurmClient:
    """Return the client of a cluster, whose lists all sessions share."""
    return SlurmClient(conf)


class SlurmSession(HostSession, SlurmSpawner):  # type: ignore[misc]  # untyped base
    """``SlurmSpawner`` on a lease."""

    site = Instance(BackendSettings, help="""The settings of the installation's backend.""").tag(
        config=True
    )

    _node = ""
    """The node on which the job runs; empty while it is pending."""
    _chosen = SlurmOptions()
    """The options with the session's image, from the submission on."""

    @default("exec_prefix")
    def _exec_prefix_default(self) -> str:
        """Submit as the account of the hub."""
        return ""

    @default("req_srun")
    def _req_srun_default(self) -> str:
        return ""

    @default("req_homedir")
    def _req_homedir_default(self) -> str:
        return str(self.home_dir)

    @default("batch_script")
    def _batch_script_default(self) -> str:
        return _TEMPLATE

    @default("req_prologue")
    def _req_prologue_default(self) -> str:
        return "\n".join(prologue_lines(self._slurm.prologue))

    @default("batchspawner_singleuser_cmd")
    def _singleuser_default(self) -> str:
        return str(Path(sys.prefix) / "bin" / "batchspawner-singleuser")

    @property
    def _slurm(self) -> SlurmOptions:
        return options_of(self.site)

    @property
    def _image(self) -> str:
        return "" if self.lease is None else self.lease.image

    @property
    def client(self) -> SlurmClient:
        return _client(self._slurm.conf)

    # -- LeaseMixin -------------------------------------------------------------------------

    def device_environment(self) -> dict[str, str]:
        devices = devices_of(self.lease) if self.lease else ()
        return device_variables(devices) | {VARIABLE: "slurm"}

    def _start_slot(self, lease: LeaseOut) -> AbstractAsyncContextManager[None]:
        """Return no limit: the start of a session is no work for the machine of the hub."""
        return nullcontext()

    async def await_cluster(self) -> None:
        """Submit the job of the session, and wait until Slurm has started it.

        Raises:
            BackendFailed: Slurm refused it.
            ServerDied: it ended, or was cancelled, while it waited.
            Unavailable: slurmctld did not answer.
        """
        await self.prepare_home()
        self.open_log().close()
        await self._end_earlier_job()
        self._node, self.ip, self.port = "", "0.0.0.0", 0  # noqa: S104  # of its node
        self._chosen = await asyncio.to_thread(with_image, self._slurm, self._image)
        await self.submit_batch_script()
        self._save_state((self.ip, self.port))
        told = ""
        while True:
            status = await self.query_job_status()
            if status is JobStatus.RUNNING:
                return
            if status is JobStatus.NOTFOUND:
                raise await self._died("its job was cancelled in Slurm, or has ended.")
            if self.job_status and self.job_status != told:
                told = self.job_status
                self._progress.say(60, told)
            await asyncio.sleep(self.startup_poll_interval)

    async def start_server(self) -> Address:
        """Wait until the server has reported its port, as ``batchspawner-singleuser`` does."""
        while not self.port:
            if await self.query_job_status() is JobStatus.NOTFOUND:
                raise await self._died("its job ended before the server had a port.")
            await asyncio.sleep(self.startup_poll_interval)
        nodes = await asyncio.to_thread(self.client.nodes)
        self.ip = next((node.address for node in nodes if node.name == self._node), self._node)
        return self.ip, self.port

    def server_process(self) -> StartedIn | None:
        return StartedIn(pid=int(self.job_id), started_at=0.0) if self.job_id else None

    async def kill_started(self) -> None:
        if self.job_id:
            await self.cancel_batch_job()

    # -- SlurmSpawner -----------------------------------------------------------------------

    async def submit_batch_script(self) -> str:
        """Submit the job.

        Raises:
            BackendFailed: Slurm refused it.
            Unavailable: slurmctld did not answer.
        """
        values = self.get_req_subvars() | {"cmd": self.cmd_formatted_for_batch()}
        script = await self._get_batch_script(**values)
        command = shlex.split(format_template(self.exec_prefix, **values))
        command += shlex.split(format_template(self.batch_submit_cmd, **values))
        number = await asyncio.to_thread(
            self.client.submit,
            self._lease_options(),
            script,
            command=command,
            environment=self.get_env(),
        )
        self.job_id = str(number)
        return self.job_id

    def cmd_formatted_for_batch(self) -> str:
        command = [self.batchspawner_singleuser_cmd, *self.cmd, *self.get_args()]
        return shlex.join([*self._chosen.container, *command])

    async def query_job_status(self) -> JobStatus:
        try:
            job = await asyncio.to_thread(self._job)
        except Unavailable as error:
            self.log.warning("%s: %s", self._log_name, error)
            return JobStatus.UNKNOWN
        if job is None or job.has_ended:
            return JobStatus.NOTFOUND
        self.job_status = job.why_waiting()
        if job.is_pending:
            return JobStatus.PENDING
        self._node = job.node
        return JobStatus.RUNNING

    async def cancel_batch_job(self) -> None:
        try:
            await asyncio.to_thread(self.client.signal, [int(self.job_id)])
        except Unavailable as error:
            # The service cancels it when slurmctld is back, because its lease has ended.
            self.log.warning("%s: %s", self._log_name, error)

    # -- private ----------------------------------------------------------------------------

    def _job(self) -> SlurmJob | None:
        """Return the job of this session. Raises Unavailable."""
        return next((job for job in self.client.jobs() if str(job.id) == self.job_id), None)

    async def _died(self, otherwise: str) -> ServerDied:
        job = await asyncio.to_thread(self._job)
        cause = None if job is None else job.status().cause
        return ServerDied(otherwise if cause is None else cause.message)

    async def _end_earlier_job(self) -> None:
        """Cancel the job of a hub that died before its server had answered."""
        deadline = asyncio.get_running_loop().time() + _END_SECONDS
        while asyncio.get_running_loop().time() < deadline:
            live = await asyncio.to_thread(self.client.live_jobs, self.site.installation)
            if self.lease_id not in live:
                return
            await asyncio.to_thread(self.client.signal, [live[self.lease_id].id])
            await asyncio.sleep(self.startup_poll_interval)
        raise Unavailable("An earlier job of this session does not end.")

    def _lease_options(self) -> list[str]:
        lease = self.lease
        if lease is None:
            raise BackendFailed("The session has no lease.")
        devices = devices_of(lease)
        slurm = self._slurm
        found = lease_options(
            JobMark(
                installation=self.site.installation,
                lease=lease.id,
                devices=tuple(device.id for device in devices),
            ),
            slurm,
            home=Path(self.home_dir),
            log=self.log_path,
            seconds=self._seconds,
            devices=devices,
            node=lease.node,
            group=self._group,
        )
        return [*found, *self._chosen.options]
