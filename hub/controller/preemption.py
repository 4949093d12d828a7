"""Preempt and halt requests: give notice, request a checkpoint, stop after the grace period.

Notices are stored with their end, so that a restarted service continues from there. Delivering a
notice to an attempt twice is harmless.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from functools import partial
from math import inf

from ..attempts.spec import member_folder
from ..messages.requests import notice_sentence
from ..records.gangs import member_id
from ..records.leases import LeaseRecord
from ..records.notices import NoticeKind, StopNotice
from ..records.requests import Cause, CauseCode, RequestRecord
from ..runtime.context import Context
from ..runtime.snapshots import SnapshotReader
from ..scheduling.cycle.reclaim_step import withdrawable
from ..scheduling.model.plan import Reason, Stop
from ..scheduling.model.snapshot import Kind
from ..scheduling.model.states import State
from ..scheduling.queue.running_set import notice_end
from ..transitions import lifecycle, preemption
from .loop_memory import Pairs

log = logging.getLogger(__name__)

WITHDRAWAL_SECONDS = 5.0
"""Seconds between checks of notices for withdrawal; a notice is also checked at its end."""

Delivery = tuple[str, "partial[None]"]
"""A key, and an action that may take long; actions with the same key never overlap."""


class PreemptionController:
    """Called by the loop in every cycle; its state may be lost."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._delivered: dict[str, StopNotice] = {}
        """The notice that an attempt has received, by lease."""
        self._checked_at = -inf
        """When notices were last checked for withdrawal."""

    def give_notices(self, stops: Iterable[Stop], now: float) -> bool:
        """Give notice to the victims of the plan; return whether anything changed."""
        changed = False
        for stop in stops:
            before = self._store.request(stop.request_id)
            kind = notice_kind(stop)
            lease = before.lease
            ends = inf if lease is None else lease.granted_at + before.seconds
            notice = StopNotice(
                kind=kind,
                message=notice_sentence(kind, stop.group, before.group),
                given_at=now,
                stops_at=notice_end(now, self._context.grace_seconds, ends),
                group=stop.group,
                for_request=stop.for_request,
            )
            if before.state is State.GRANTED:
                after = self._store.apply(
                    before.id, preemption.preempt, stop_cause(notice), notice, now=now
                )
            else:
                after = self._store.apply(before.id, preemption.notify, notice, now=now)
            if after != before:
                log.info("%s is preempted for %s", stop.request_id, stop.for_request)
                changed = True
        return changed

    def reconcile(self, pairs: Pairs, now: float) -> bool:
        """Stop requests at the end of their grace period; withdraw notices without a preemptor.

        A halted job is stopped sooner, once it has saved its work.
        """
        victims = {
            request.id: (request, request.notice)
            for _, request in pairs
            if request.notice is not None and request.state is not State.STOPPING
        }
        withdrawn = self._withdrawn({name: notice for name, (_, notice) in victims.items()}, now)
        changed = False
        for request, notice in victims.values():
            if request.id in withdrawn:
                after = self._store.apply(
                    request.id, preemption.withdraw_notice, withdrawn[request.id], now=now
                )
            elif now < notice.stops_at and not _has_saved(request, notice):
                continue
            elif notice.comes_back:
                after = self._store.apply(
                    request.id, preemption.preempt, stop_cause(notice), notice, now=now
                )
            else:
                cause = stop_cause(notice)
                after = self._store.apply(
                    request.id, lifecycle.stop, State.CANCELLED, cause, now=now
                )
            changed |= after != request
        return changed

    def _withdrawn(self, notices: Mapping[str, StopNotice], now: float) -> dict[str, str]:
        """Return the victims whose notice is withdrawn, with the reason."""
        preemptors = {
            name: notice.for_request for name, notice in notices.items() if notice.for_request
        }
        queued = {name for name in set(preemptors.values()) if self._is_queued(name)}
        reasons = {
            name: f"{preemptor} is no longer queued."
            for name, preemptor in preemptors.items()
            if preemptor not in queued
        }
        preemptors = {name: p for name, p in preemptors.items() if p in queued}
        expired = {name for name in preemptors if now >= notices[name].stops_at}
        if preemptors and (expired or now >= self._checked_at + WITHDRAWAL_SECONDS):
            self._checked_at = now
            may_stay = withdrawable(
                SnapshotReader.of(self._context).snapshot(now), preemptors, now, expired=expired
            )
            reasons |= {
                name: f"Stopping it would not start {preemptors[name]} sooner." for name in may_stay
            }
        return reasons

    def deliveries(self, pairs: Pairs) -> list[Delivery]:
        """Return the deliveries of notices and withdrawals to attempts of jobs.

        Sessions are not in the list: they read their notice from the service.
        """
        due: list[Delivery] = []
        jobs = [(lease, r) for lease, r in pairs if r.kind is not Kind.SESSION]
        for lease, request in jobs:
            delivered = self._delivered.get(lease.id)
            if request.notice is not None and request.notice != delivered:
                due.append((f"notice/{lease.id}", partial(self._deliver, lease, request)))
            elif request.notice is None and delivered is not None:
                due.append((f"notice/{lease.id}", partial(self._withdraw, lease)))
        for lease_id in self._delivered.keys() - {lease.id for lease, _ in jobs}:
            del self._delivered[lease_id]
        return due

    def _deliver(self, lease: LeaseRecord, request: RequestRecord) -> None:
        c = self._context
        folder = c.files.attempt_folder(request.id, lease.epoch)
        if request.notice is None:
            return
        if not lease.members:
            c.backend.request_checkpoint(
                lease.id, lease.handle, folder, request.notice, trusted=request.trusted
            )
        for member in lease.members:
            c.backend.request_checkpoint(
                member_id(lease.id, member.rank),
                lease.handle_of(member),
                member_folder(folder, member.rank),
                request.notice,
            )
        self._delivered[lease.id] = request.notice

    def _withdraw(self, lease: LeaseRecord) -> None:
        c = self._context
        folder = c.files.attempt_folder(lease.request_id, lease.epoch)
        for rank in range(max(1, len(lease.members))):
            c.backend.withdraw_notice(member_folder(folder, rank))
        self._delivered.pop(lease.id, None)

    def _is_queued(self, request_id: str) -> bool:
        return self._store.request(request_id).state is State.QUEUED


def notice_kind(stop: Stop) -> NoticeKind:
    """Return the kind of notice for this preemption."""
    if stop.why is not Reason.GUARANTEE:
        return NoticeKind.URGENT
    return NoticeKind.MOVED if stop.relocated else NoticeKind.GUARANTEE


def _has_saved(request: RequestRecord, notice: StopNotice) -> bool:
    """Whether a job that is halted has saved its work since its notice."""
    saved_at = request.lease.saved_at if request.lease is not None else None
    return notice.kind is NoticeKind.HALT and saved_at is not None and saved_at > notice.given_at


def stop_cause(notice: StopNotice) -> Cause:
    """Return the cause with which a request is stopped after its notice."""
    if notice.kind is NoticeKind.HALT:
        return Cause(code=CauseCode.HALTED, message=notice.message)
    code = CauseCode.PREEMPTED if notice.comes_back else CauseCode.BUDGET
    return Cause(code=code, message=f"Stopped, as announced: {notice.message}")
