"""Retry requests whose attempt did not start, was lost, or failed with a transient error."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace

from ..errors import StaleEpoch
from ..forecasts.memory_need import with_memory_need
from ..messages.units import complete_sentence, duration
from ..records.error_classes import ERROR_CLASSES, ErrorClass, back_off_seconds, retry_limit
from ..records.json_value import Json
from ..records.leases import LeaseRecord
from ..records.notices import NoticeKind
from ..records.requests import Cause, CauseCode, RequestRecord
from ..runtime.context import Context
from ..scheduling.model.snapshot import Kind
from ..scheduling.model.states import State
from ..transitions import lifecycle

log = logging.getLogger(__name__)

_NO_RESULT = "its processes disappeared and reported no result"
_INFRASTRUCTURE = ErrorClass.INFRASTRUCTURE
MAX_ATTEMPTS = 3
"""Failed starts after which a request fails."""
ENGINE_AWAY = "engine_away"
"""Kind of the event in the history of a request when the engine did not answer its start."""


def requeue_or_fail(
    context: Context,
    lease: LeaseRecord,
    request: RequestRecord,
    why: str,
    details: str = "",
    *,
    until: float = 0.0,
) -> None:
    """Requeue a request whose attempt did not start, or fail it after ``MAX_ATTEMPTS``.

    A job has a back-off before its next attempt; a session has none, since its user is waiting.

    Args:
        until: the end of its charge, if a cluster took its devices; by default it costs nothing.
    """
    now = context.clock()
    until = min(now, until)
    failed_starts = _failed_starts(context, request)
    try:
        if failed_starts < MAX_ATTEMPTS and not _is_halted(request):
            delay = (
                0.0
                if request.kind is Kind.SESSION
                else back_off_seconds(_INFRASTRUCTURE, failed_starts)
            )
            what_next = _what_next(failed_starts, MAX_ATTEMPTS - 1, delay)
            cause = Cause(
                code=CauseCode.START_FAILED, message=f"{complete_sentence(why)} {what_next}"
            )
            context.store.apply_to_lease(
                lease.id,
                lifecycle.give_back,
                cause,
                now=now,
                charge_until=until,
                not_before=now + delay if delay else None,
            )
        else:
            cause = Cause(
                code=CauseCode.START_FAILED,
                message=f"{why} ({failed_starts} attempts)",
                details=details,
            )
            context.store.apply(request.id, lifecycle.stop, State.FAILED, cause, now=now)
            context.store.apply_to_lease(lease.id, lifecycle.finish, now=now, charge_until=until)
    except StaleEpoch:
        log.info("%s changed its state meanwhile", lease.id)
    context.notifier.notify()


def finish_attempt(
    context: Context, lease: LeaseRecord, request: RequestRecord, *, now: float, until: float
) -> None:
    """Finish a stopping attempt without processes; a job that failed transiently is retried.

    The owner of a job that ran out of memory is told how much it would have needed.

    Args:
        until: the end of its charge.
    """
    request = context.store.request(request.id)
    request = _retry_transient(context, request, now)
    told = with_memory_need(context, request) if request.target is State.FAILED else None
    if told is not None:
        request = context.store.apply(request.id, lifecycle.amend_cause, told, now=now)
    not_before = None
    if request.target is State.HALTED and _is_transient(request.cause):
        not_before = now + back_off_seconds(
            ErrorClass.TRANSIENT, _times_halted(context, request, _TRANSIENT) + 1
        )
    after = context.store.apply_to_lease(
        lease.id, lifecycle.finish, now=now, charge_until=until, not_before=not_before
    )
    if after.state is State.QUEUED:
        context.progress.requeued(request.id)
    elif after.kind is Kind.JOB:
        context.run_times.learn(request.id)


def lose(
    context: Context,
    lease: LeaseRecord,
    request: RequestRecord,
    *,
    until: float,
    details: str,
    why: str = "",
) -> None:
    """Requeue a job whose processes disappeared, or fail it after its retries.

    Args:
        until: the end of its charge.
        why: what is known about the loss, as a sentence.
    """
    now = context.clock()
    limit = _limit(CauseCode.LOST, request)
    retry = _times_lost(context, request) + 1
    again = retry <= limit
    delay = back_off_seconds(_INFRASTRUCTURE, retry)
    what_next = (
        _what_next(retry, limit, delay)
        if again
        else f"{_exhausted(limit)}Its output until then is kept as partial output."
    )
    cause = Cause(
        code=CauseCode.LOST,
        message=f"Lost: {complete_sentence(why or _NO_RESULT)} {what_next}",
        details=details,
    )
    context.store.apply_to_lease(
        lease.id,
        lifecycle.lose,
        cause,
        now=now,
        charge_until=until,
        requeue=again,
        not_before=now + delay if again and delay else None,
    )
    if again:
        log.info("%s was lost: %s", lease.id, what_next)
        context.progress.requeued(request.id)


def may_retry_device_fault(context: Context, request: RequestRecord) -> bool:
    """Return whether a job is queued again after its device failed."""
    limit = _limit(CauseCode.DEVICE_FAULT, request)
    return _times_halted(context, request, {CauseCode.DEVICE_FAULT}) < limit


def _retry_transient(context: Context, request: RequestRecord, now: float) -> RequestRecord:
    """Requeue a request that is stopping with a transient error, while it has retries left."""
    cause = request.cause
    if (
        request.state is not State.STOPPING
        or request.target is not State.FAILED
        or cause is None
        or not _is_transient(cause)
    ):
        return request
    limit = _limit(cause.code, request)
    retry = _times_halted(context, request, _TRANSIENT) + 1
    if retry > limit:
        advice = (
            _exhausted(limit)
            or "This error may be temporary: with --retries 2 such a job is tried again."
        )
        if advice.strip() in cause.message:
            return request  # After a crash between this transition and the next.
        told = replace(cause, message=f"{complete_sentence(cause.message)} {advice.strip()}")
        return context.store.apply(request.id, lifecycle.amend_cause, told, now=now)
    what_next = _what_next(retry, limit, back_off_seconds(ErrorClass.TRANSIENT, retry))
    told = replace(cause, message=f"{complete_sentence(cause.message)} {what_next}")
    return context.store.apply(request.id, lifecycle.halt, told, now=now)


def _limit(code: CauseCode, request: RequestRecord) -> int:
    if _is_halted(request):
        return 0
    return retry_limit(code, request.job.retries if request.job else 0)


def _is_halted(request: RequestRecord) -> bool:
    return request.notice is not None and request.notice.kind is NoticeKind.HALT


def _what_next(retry: int, limit: int, delay: float) -> str:
    when = f"in {duration(delay)}" if delay else "at once"
    return f"It is tried again {when} (retry {retry} of {limit})."


def _exhausted(limit: int) -> str:
    return f"It was retried {limit} {'time' if limit == 1 else 'times'}. " if limit else ""


_TRANSIENT = frozenset(
    code for code, found in ERROR_CLASSES.items() if found is ErrorClass.TRANSIENT
)


def _is_transient(cause: Cause | None) -> bool:
    return cause is not None and cause.code in _TRANSIENT


def _times_lost(context: Context, request: RequestRecord) -> int:
    """Return the number of its attempts that ran and were lost."""
    return sum(state == State.LOST for _, state in _state_changes(context, request))


def _times_halted(context: Context, request: RequestRecord, codes: Collection[CauseCode]) -> int:
    """Return the number of its attempts that were halted with one of these causes."""
    events = context.store.events(request.id, kinds=frozenset({"state"}))
    return sum(
        event.data.get("state") == State.HALTED and _cause_code(event.data) in codes
        for event in events
    )


def _cause_code(data: Mapping[str, Json]) -> object:
    cause = data.get("cause")
    return cause.get("code") if isinstance(cause, Mapping) else None


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
