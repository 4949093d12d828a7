"""Stop requests at their time limit, and release held devices that their owner did not claim."""

from __future__ import annotations

from dataclasses import dataclass

from ..messages.requests import unclaimed_sentence
from ..messages.units import duration
from ..records.leases import LeaseRecord
from ..records.requests import Cause, CauseCode, RequestRecord
from ..requests.presenter import claim_by
from ..runtime.context import Context
from ..scheduling.model.snapshot import Kind
from ..scheduling.model.states import State
from ..transitions import lifecycle, owner_changes
from .loop_memory import Pairs

LAUNCH_WINDOW = 600.0
"""Seconds in which the engine must begin to start a granted job."""


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """Called by the loop in every cycle."""

    context: Context

    def reconcile(self, pairs: Pairs, now: float) -> bool:
        """Stop requests that are past their time limit; return whether anything changed."""
        changed = False
        for lease, request in pairs:
            held_until = claim_by(request, self.context.claim_seconds)
            if held_until is not None:
                changed |= self._end_hold(request, held_until, now)
                continue
            if request.state is State.GRANTED and request.kind is not Kind.SESSION:
                changed |= self._return_unlaunched(lease, now)  # its limit counts from its launch
                continue
            over = now - lease.granted_at >= request.seconds
            if over and request.state in (State.GRANTED, State.STARTING, State.RUNNING):
                cause = Cause(
                    code=CauseCode.TIME_LIMIT,
                    message=f"It reached its time limit of {duration(request.seconds)}.",
                )
                self.context.store.apply(
                    request.id, lifecycle.stop, State.TIMED_OUT, cause, now=now
                )
                changed = True
        return changed

    def _return_unlaunched(self, lease: LeaseRecord, now: float) -> bool:
        """Queue a job again whose start has not begun, such as one behind starts that hang."""
        if now - lease.granted_at < LAUNCH_WINDOW:
            return False
        cause = Cause(
            code=CauseCode.START_FAILED,
            message=f"It was not started within {duration(LAUNCH_WINDOW)} of the grant.",
        )
        self.context.store.apply_to_lease(
            lease.id, lifecycle.give_back, cause, now=now, charge_until=lease.granted_at
        )
        return True

    def _end_hold(self, request: RequestRecord, until: float, now: float) -> bool:
        """Release unclaimed devices; the next queued request gets them in the same cycle."""
        if now < until:
            return False
        message = unclaimed_sentence(self.context.claim_seconds, request.devices)
        cause = Cause(code=CauseCode.UNCLAIMED, message=message)
        self.context.store.apply(
            request.id, owner_changes.cancel_unclaimed, cause, now=now, charge_until=until
        )
        return True
