"""Start jobs through the backend, and handle their end or loss."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..attempts import snapshots
from ..attempts.compile_caches import unlink_new, withdraw_offers
from ..attempts.spec import FILES, member_folder
from ..attempts.trials import hand_over_trials
from ..errors import BackendFailed, TooLarge, Unavailable
from ..interfaces.backend import AttemptStatus, LaunchOrder, MemberOrder
from ..records.gangs import JobGang, member_id
from ..records.leases import Handle, LeaseRecord
from ..records.requests import JobSpec, RequestRecord
from ..requests import termination
from ..requests.attempt_reports import AttemptReports, new_token, token_hash
from ..requests.gang_outcome import member_message, missing_member
from ..requests.resumption import latest_snapshot
from ..requests.surviving_end import surviving_end
from ..requests.sweeps import earlier_trials
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

    def start(self, lease: LeaseRecord, request: RequestRecord) -> Mapping[str, Handle]:
        """Store that the attempt starts, then start it.

        Return the handles of its process groups; empty if the backend failed.
        """
        c = self.context
        if request.job is None:
            raise BackendFailed(f"{request.id} is not a job.")
        token = new_token()
        now = c.clock()
        c.store.launch(lease.id, now=now, token_hash=token_hash(token))
        try:
            order = self._order(lease, request, request.job, token)
            if request.job.gang is None:
                return {lease.id: c.backend.start(order)}
            return c.backend.start_gang(_member_orders(order, request.job.gang, lease))
        except BackendFailed as error:
            log.warning("%s: %s", lease.id, error)
            self.discard_offers(lease, request)
            requeue_or_fail(c, lease, request, str(error))
            return {}
        except (Unavailable, OSError) as error:
            # The job may or may not have started. The cause is the engine or a full disk, so that
            # this attempt does not count against the job.
            log.warning("%s: %s", lease.id, error)
            c.store.apply(
                request.id, lifecycle.record_event, ENGINE_AWAY, {"why": str(error)}, now=now
            )
            return {}

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
        if job.sweep is not None:
            finished = earlier_trials(c, request, before=lease.epoch)
            if finished is not None:
                try:
                    hand_over_trials(finished, folder)
                except OSError as error:  # such as a link in the place of a folder
                    log.warning("%s: trials are not taken over: %s", lease.id, error)
        whole = job.sweep is not None or job.computes_prefix
        earlier = None if whole else latest_snapshot(c, request, before=lease.epoch)
        if earlier is not None:
            snapshots.hand_over(earlier, folder)
            if earlier.folder.parent == folder.parent:
                job = replace(job, from_cell=0)  # an attempt of its own has got further
        else:
            c.prefixes.offer(request, lease, folder)
        c.compile_caches.offer(request, lease, folder)
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
        self, lease: LeaseRecord, request: RequestRecord, seen: float, status: AttemptStatus
    ) -> None:
        """Requeue or fail a ``starting`` job that has no process.

        The service was killed before the fork, or the runner ended before its first report.

        Args:
            seen: the last sign of life that the service saw.
            status: what the engine knows about the end.
        """
        why = status.cause.message if status.cause else status.lost
        why = why or "The job's runner ended before the job started."
        rank = 0
        missing = missing_member(self.context.store.request(request.id))
        if missing is not None and missing.end is not None:
            why, rank = member_message(missing, missing.end.message), missing.rank
        tail = self.log_tail(request, lease, rank)
        self.discard_offers(lease, request)
        until = status.cluster_end(seen)
        requeue_or_fail(self.context, lease, request, why, tail, until=until)

    def collect(self, lease: LeaseRecord, request: RequestRecord) -> float:
        """Store the journaled events that the attempt could not deliver.

        Returns:
            the time of the last event in the journal, the attempt's last sign of life; 0 if the
            journal is empty.
        """
        ranks = [member.rank for member in lease.members]
        if ranks:
            return max(self.collect_member(lease, request, rank) for rank in ranks)
        return self._collect(lease, request, lease.id, 0)

    def collect_member(self, lease: LeaseRecord, request: RequestRecord, rank: int) -> float:
        """Store the journaled events of one member of a gang, as ``collect`` does for all."""
        return self._collect(lease, request, member_id(lease.id, rank), rank)

    def _collect(self, lease: LeaseRecord, request: RequestRecord, group: str, rank: int) -> float:
        folder = self.context.files.attempt_folder(request.id, lease.epoch)
        events = self.context.backend.journal(member_folder(folder, rank))
        if events:
            AttemptReports(self.context).store_events(group, events)
        return max((event.at for event in events), default=0.0)

    def discard_offers(self, lease: LeaseRecord, request: RequestRecord) -> None:
        """Delete what an attempt without processes was offered, and what it left beside it.

        Called after its events are stored and before its end is: a service that is killed between
        the two repeats it. A runner that ended by itself has deleted the most of it already.
        """
        try:
            folder = self.context.files.attempt_folder(request.id, lease.epoch)
            withdraw_offers(folder)
            if request.job is not None and not request.job.computes_prefix:
                unlink_new(folder)
            self.context.prefixes.ended(request, folder)
        except Exception:  # what a job leaves in its folder holds up no other one
            log.exception("%s: what it was offered is left in its folder", lease.id)

    def log_tail(self, request: RequestRecord, lease: LeaseRecord, rank: int = 0) -> str:
        """Return the end of the log of an attempt, or of a member of a gang."""
        text = self.context.files.log(
            request.id, lease.epoch, offset=-_LOG_TAIL, limit=_LOG_TAIL, member=rank
        )
        return text.decode(errors="replace")

    def died(
        self,
        lease: LeaseRecord,
        request: RequestRecord,
        seen: float,
        status: AttemptStatus,
    ) -> None:
        """Store the end of a ``running`` job that has no process left.

        Args:
            seen: the last sign of life that the service saw.
            status: what the engine knows about the end.
        """
        c, known = self.context, status.cause
        last = self.collect(lease, request)
        self.discard_offers(lease, request)
        now = c.clock()
        until = min(now, status.end(seen, last))
        if c.store.request(request.id).state is State.STOPPING:
            retries.finish_attempt(c, lease, request, now=now, until=until)
            return
        if known is not None:
            c.store.apply(request.id, lifecycle.stop, State.FAILED, known, now=now)
            retries.finish_attempt(c, lease, request, now=now, until=until)
            return
        if request.gang is not None:
            return self._lose_gang(lease, request, until)
        tail = self.log_tail(request, lease)
        output = self._output(request, lease)
        surviving = surviving_end(output, status.exit_status, lease, tail, request.notice)
        if surviving is not None and not termination.is_loss(request, surviving[1]):
            target, cause = surviving
            c.store.apply(request.id, lifecycle.stop, target, cause, now=now)
            retries.finish_attempt(c, lease, request, now=now, until=until)
            return
        retries.lose(c, lease, request, until=until, details=tail, why=status.lost)

    def _lose_gang(self, lease: LeaseRecord, request: RequestRecord, until: float) -> None:
        """Requeue or fail a gang without processes that no report has ended."""
        missing = missing_member(self.context.store.request(request.id))
        rank = 0 if missing is None else missing.rank
        why = (
            ""
            if missing is None or missing.end is None
            else (member_message(missing, missing.end.message))
        )
        tail = self.log_tail(request, lease, rank)
        retries.lose(self.context, lease, request, until=until, details=tail, why=why)

    def _output(self, request: RequestRecord, lease: LeaseRecord) -> bytes | None:
        try:
            return self.context.files.output(request.id, lease.epoch)
        except TooLarge:
            return None


def _member_orders(order: LaunchOrder, gang: JobGang, lease: LeaseRecord) -> list[LaunchOrder]:
    """Return the launch orders of all members of a gang, by rank."""
    by_id = {device.id: device for device in order.devices}
    in_role = Counter(member.role for member in lease.members)
    orders = []
    for member in lease.members:
        role = gang.role(member.role)
        orders.append(
            replace(
                order,
                lease_id=member_id(lease.id, member.rank),
                devices=tuple(by_id[name] for name in member.devices),
                job=replace(order.job, command=role.command, gang=None),
                folder=member_folder(order.folder, member.rank),
                image=role.image,
                node=member.node,
                member=MemberOrder(
                    rank=member.rank,
                    size=len(lease.members),
                    role=member.role,
                    number=member.number,
                    role_size=in_role[member.role],
                    output_folder=order.folder / FILES,
                ),
            )
        )
    return orders
