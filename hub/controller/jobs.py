"""Start jobs through the backend, and handle their end or loss."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from ..attempts import snapshots
from ..errors import BackendFailed, TooLarge, Unavailable
from ..interfaces.backend import LaunchOrder
from ..records.leases import Handle, LeaseRecord
from ..records.requests import Cause, JobSpec, RequestRecord
from ..requests import termination
from ..requests.attempt_reports import AttemptReports, new_token, token_hash
from ..requests.resumption import latest_snapshot
from ..requests.surviving_end import surviving_end
from ..runtime.context import Context
from ..scheduling.model.states import State
from ..transitions import lifecycle
from . import retries
from .retries import ENGINE_AWAY, requeue_or_fail

log = logging.getLogger(__name__)

_LOG_TAIL = 4000


@dataclass(frozen=True, slots=True)
class JobController:
    """Runs jobs through the backend."""

    context: Context

    def start(self, lease: LeaseRecord, request: RequestRecord) -> Handle | None:
        """Store that the attempt starts, then start it; None if the backend failed."""
        c = self.context
        if request.job is None:
            raise BackendFailed(f"{request.id} is not a job.")
        token = new_token()
        now = c.clock()
        c.store.launch(lease.id, now=now, token_hash=token_hash(token))
        try:
            return c.backend.start(self._order(lease, request, request.job, token))
        except BackendFailed as error:
            log.warning("%s: %s", lease.id, error)
            requeue_or_fail(c, lease, request, str(error))
            return None
        except (Unavailable, OSError) as error:
            # The job may or may not have started. The cause is the engine or a full disk, so that
            # this attempt does not count against the job.
            log.warning("%s: %s", lease.id, error)
            c.store.apply(
                request.id, lifecycle.record_event, ENGINE_AWAY, {"why": str(error)}, now=now
            )
            return None

    def _order(
        self, lease: LeaseRecord, request: RequestRecord, job: JobSpec, token: str
    ) -> LaunchOrder:
        """Return the launch order of an attempt.

        Raises:
            BackendFailed: the owner's home cannot be used.
        """
        c = self.context
        devices = {device.id: device for device in c.store.devices()}
        folder = c.files.attempt_folder(request.id, lease.epoch)
        earlier = latest_snapshot(c, request, before=lease.epoch)
        if earlier is not None:
            snapshots.hand_over(earlier, folder)
            if earlier.folder.parent == folder.parent:
                job = replace(job, from_cell=0)  # an attempt of its own has got further
        return LaunchOrder(
            lease_id=lease.id,
            request_id=request.id,
            epoch=lease.epoch,
            owner=request.owner,
            devices=tuple(devices[name] for name in lease.devices),
            job=job,
            seconds=request.seconds,
            token=token,
            folder=folder,
            input_path=c.files.input_path(request.id),
            # Trusted work of the service never reads a folder that users can write to.
            home=folder if request.trusted else c.files.home(request.owner),
            archive_path=c.files.archive_path(request.id) if job.archive else None,
            image=request.image,
            node=lease.node,
            group=request.group,
            trusted=request.trusted,
        )

    def not_started(
        self, lease: LeaseRecord, request: RequestRecord, known: Cause | None = None
    ) -> None:
        """Requeue or fail a ``starting`` job that has no process.

        The service was killed before the fork, or the runner ended before its first report.

        Args:
            known: the cause, if the engine knows it.
        """
        tail = self.context.files.log(request.id, lease.epoch)[-_LOG_TAIL:]
        requeue_or_fail(
            self.context,
            lease,
            request,
            known.message if known else "The job's runner ended before the job started.",
            tail.decode(errors="replace"),
        )

    def collect(self, lease: LeaseRecord, request: RequestRecord) -> float:
        """Store the journaled events that the attempt could not deliver.

        Returns:
            the time of the last event in the journal, the attempt's last sign of life; 0 if the
            journal is empty.
        """
        folder = self.context.files.attempt_folder(request.id, lease.epoch)
        events = self.context.backend.journal(folder)
        if events:
            AttemptReports(self.context).store_events(lease.id, events)
        return max((event.at for event in events), default=0.0)

    def died(
        self,
        lease: LeaseRecord,
        request: RequestRecord,
        seen: float,
        known: Cause | None = None,
        exit_status: int | None = None,
    ) -> None:
        """Store the end of a ``running`` job that has no process left.

        Args:
            seen: the last sign of life that the service saw.
            known: the cause, if the engine knows it.
            exit_status: of the runner, if the engine saw it end.
        """
        c = self.context
        last = self.collect(lease, request)
        now = c.clock()
        until = min(now, max(seen, last))
        if c.store.request(request.id).state is State.STOPPING:
            retries.finish_attempt(c, lease, request, now=now, until=until)
            return
        if known is not None:
            c.store.apply(request.id, lifecycle.stop, State.FAILED, known, now=now)
            retries.finish_attempt(c, lease, request, now=now, until=until)
            return
        tail = c.files.log(request.id, lease.epoch)[-_LOG_TAIL:].decode(errors="replace")
        output = self._output(request, lease)
        surviving = surviving_end(output, exit_status, lease, tail, request.notice)
        if surviving is not None and not termination.is_loss(request, surviving[1]):
            target, cause = surviving
            c.store.apply(request.id, lifecycle.stop, target, cause, now=now)
            retries.finish_attempt(c, lease, request, now=now, until=until)
            return
        retries.lose(c, lease, request, until=until, details=tail)

    def _output(self, request: RequestRecord, lease: LeaseRecord) -> bytes | None:
        try:
            return self.context.files.output(request.id, lease.epoch)
        except TooLarge:
            return None
