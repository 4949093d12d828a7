"""Preempt requests: give notice, request a checkpoint, stop at the end of the grace period.

Notices are in the store with their end, so that a service that was killed goes on from there.
To tell an attempt twice is harmless.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from functools import partial
from math import inf

from ..messages.requests import notice_sentence
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
"""How often notices are checked for withdrawal; each is checked at its end in any case."""

Telling = tuple[str, "partial[None]"]
"""An action that may take long, with the key under which it runs once at a time."""


class PreemptionController:
    """Called by the loop in every cycle; what it remembers may be lost."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._told: set[str] = set()
        """Leases whose attempt knows of its notice."""
        self._looked_at = -inf

    def ask(self, stops: Iterable[Stop], now: float) -> bool:
        """Give notice to the victims of the plan; return whether anything changed."""
        changed = False
        for stop in stops:
            before = self._store.request(stop.request_id)
            kind = kind_of(stop)
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
                    before.id, preemption.preempt, cause_of(notice), notice, now=now
                )
            else:
                after = self._store.apply(before.id, preemption.notify, notice, now=now)
            if after != before:
                log.info("%s is preempted for %s", stop.request_id, stop.for_request)
                changed = True
        return changed

    def reconcile(self, pairs: Pairs, now: float) -> bool:
        """Stop victims at the end of their grace period; withdraw notices without a preemptor."""
        asked = {
            request.id: (request, request.notice)
            for _, request in pairs
            if request.notice is not None and request.state is not State.STOPPING
        }
        withdrawn = self._withdrawn({name: notice for name, (_, notice) in asked.items()}, now)
        changed = False
        for request, notice in asked.values():
            if request.id in withdrawn:
                after = self._store.apply(
                    request.id, preemption.withdraw_notice, withdrawn[request.id], now=now
                )
            elif now < notice.stops_at:
                continue
            elif notice.comes_back:
                after = self._store.apply(
                    request.id, preemption.preempt, cause_of(notice), notice, now=now
                )
            else:
                cause = cause_of(notice)
                after = self._store.apply(
                    request.id, lifecycle.stop, State.CANCELLED, cause, now=now
                )
            changed |= after != request
        return changed

    def _withdrawn(self, notices: Mapping[str, StopNotice], now: float) -> dict[str, str]:
        """Return the victims whose notice is withdrawn, with the reason."""
        asked = {name: notice.for_request for name, notice in notices.items() if notice.for_request}
        waits = {name for name in set(asked.values()) if self._waits(name)}
        found = {
            name: f"{other} does not wait for it any more."
            for name, other in asked.items()
            if other not in waits
        }
        asked = {name: other for name, other in asked.items() if other in waits}
        over = {name for name in asked if now >= notices[name].stops_at}
        if asked and (over or now >= self._looked_at + WITHDRAWAL_SECONDS):
            self._looked_at = now
            may_stay = withdrawable(
                SnapshotReader.of(self._context).snapshot(now), asked, now, expired=over
            )
            found |= {name: f"{asked[name]} would start no sooner if it went." for name in may_stay}
        return found

    def tellings(self, pairs: Pairs) -> list[Telling]:
        """Return the notices that attempts of jobs do not know yet; a session reads its own."""
        found: list[Telling] = []
        jobs = [(lease, r) for lease, r in pairs if r.kind is not Kind.SESSION]
        for lease, request in jobs:
            if request.notice is not None and lease.id not in self._told:
                found.append((f"notice/{lease.id}", partial(self._tell, lease, request)))
            elif request.notice is None and lease.id in self._told:
                found.append((f"notice/{lease.id}", partial(self._untell, lease)))
        self._told &= {lease.id for lease, _ in jobs}
        return found

    def _tell(self, lease: LeaseRecord, request: RequestRecord) -> None:
        c = self._context
        folder = c.files.attempt_folder(request.id, lease.epoch)
        if request.notice is not None:
            c.backend.request_checkpoint(
                lease.id, lease.handle, folder, request.notice, trusted=request.trusted
            )
        self._told.add(lease.id)

    def _untell(self, lease: LeaseRecord) -> None:
        c = self._context
        c.backend.withdraw_notice(c.files.attempt_folder(lease.request_id, lease.epoch))
        self._told.discard(lease.id)

    def _waits(self, request_id: str) -> bool:
        return self._store.request(request_id).state is State.QUEUED


def kind_of(stop: Stop) -> NoticeKind:
    """Return the kind of notice for this preemption."""
    if stop.why is not Reason.GUARANTEE:
        return NoticeKind.URGENT
    return NoticeKind.MOVED if stop.relocated else NoticeKind.GUARANTEE


def cause_of(notice: StopNotice) -> Cause:
    """Return the cause with which a victim is stopped."""
    code = CauseCode.PREEMPTED if notice.comes_back else CauseCode.BUDGET
    return Cause(code=code, message=f"Stopped, as announced: {notice.message}")
