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
"""Starts of one request that may come to nothing before it fails."""


ENGINE_AWAY = "engine_away"
"""In the history of a request whose start was not answered."""


def give_back_or_fail(
    context: Context, lease: LeaseRecord, request: RequestRecord, why: str, details: str = ""
) -> None:
    """Nothing ran: another attempt, or the end after too many."""
    now = context.clock()
    came_to_nothing = _came_to_nothing(context, request)
    try:
        if came_to_nothing < MAX_ATTEMPTS:
            context.store.apply_to_lease(
                lease.id, lifecycle.give_back, now=now, charge_until=lease.granted_at
            )
        else:
            cause = Cause(
                code=CauseCode.START_FAILED,
                message=f"{why} ({came_to_nothing} attempts)",
                details=details,
            )
            context.store.apply(request.id, lifecycle.stop, State.FAILED, cause, now=now)
            context.store.apply_to_lease(
                lease.id, lifecycle.finish, now=now, charge_until=lease.granted_at
            )
    except StaleEpoch:
        log.info("%s moved on by itself", lease.id)
    context.notifier.notify()


def _came_to_nothing(context: Context, request: RequestRecord) -> int:
    """How many of its attempts were started and never ran.

    Not those that were lost, which have a limit of their own, nor those whose device failed or
    whose engine did not answer.
    """
    moves = _moves(context, request)
    excused = {epoch for epoch, state in moves if state in (State.LOST, State.HALTED)}
    away = context.store.events(request.id, kinds=frozenset({ENGINE_AWAY}))
    excused |= {event.epoch for event in away}
    return len({epoch for epoch, state in moves if state == State.STARTING} - excused)


def _times_lost(context: Context, request: RequestRecord) -> int:
    """How many of its attempts ran and were lost; those that were given back are not."""
    return sum(state == State.LOST for _, state in _moves(context, request))


def _moves(context: Context, request: RequestRecord) -> list[tuple[int, Json]]:
    """What states its attempts went through, in order."""
    found = context.store.events(request.id, kinds=frozenset({"state"}))
    return [(event.epoch, event.data.get("state")) for event in found]
