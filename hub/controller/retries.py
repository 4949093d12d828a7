"""Requeue or fail a request whose attempt was lost or rejected."""

from __future__ import annotations

import logging

from ..errors import StaleEpoch
from ..records.json_value import Json
from ..records.leases import LeaseRecord
from ..records.requests import Cause, CauseCode, RequestRecord
from ..runtime.context import Context
from ..scheduling.model.states import State
from ..transitions import lifecycle

log = logging.getLogger(__name__)

MAX_ATTEMPTS = 3
"""Failed starts after which a request fails."""
ENGINE_AWAY = "engine_away"
"""Kind of the event in the history of a request when the engine did not answer its start."""


def requeue_or_fail(
    context: Context, lease: LeaseRecord, request: RequestRecord, why: str, details: str = ""
) -> None:
    """Requeue a request whose attempt did not start, or fail it after ``MAX_ATTEMPTS``."""
    now = context.clock()
    failed_starts = _failed_starts(context, request)
    try:
        if failed_starts < MAX_ATTEMPTS:
            context.store.apply_to_lease(
                lease.id, lifecycle.give_back, now=now, charge_until=lease.granted_at
            )
        else:
            cause = Cause(
                code=CauseCode.START_FAILED,
                message=f"{why} ({failed_starts} attempts)",
                details=details,
            )
            context.store.apply(request.id, lifecycle.stop, State.FAILED, cause, now=now)
            context.store.apply_to_lease(
                lease.id, lifecycle.finish, now=now, charge_until=lease.granted_at
            )
    except StaleEpoch:
        log.info("%s changed its state meanwhile", lease.id)
    context.notifier.notify()


def times_lost(context: Context, request: RequestRecord) -> int:
    """Return the number of its attempts that ran and were lost."""
    return sum(state == State.LOST for _, state in _state_changes(context, request))


def _failed_starts(context: Context, request: RequestRecord) -> int:
    """Return the number of its attempts that were started and never ran.

    Lost attempts are not counted, they have a limit of their own; nor are attempts whose device
    failed or whose engine did not answer.
    """
    changes = _state_changes(context, request)
    excused = {epoch for epoch, state in changes if state in (State.LOST, State.HALTED)}
    unanswered = context.store.events(request.id, kinds=frozenset({ENGINE_AWAY}))
    excused |= {event.epoch for event in unanswered}
    return len({epoch for epoch, state in changes if state == State.STARTING} - excused)


def _state_changes(context: Context, request: RequestRecord) -> list[tuple[int, Json]]:
    """Return the epoch and the new state of its state changes, in order."""
    events = context.store.events(request.id, kinds=frozenset({"state"}))
    return [(event.epoch, event.data.get("state")) for event in events]
