"""Select the notice that a user is shown, of everything that will stop a request or take a device.

Pages, commands, widgets and JupyterLab show the one that acts first, and none that would act after
the request has ended anyway: such as a drain in two hours for a session that ends in one.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Literal, TypeVar

from ..messages.requests import (
    drain_warning,
    halt_warning,
    held_notice,
    idle_warning,
    time_limit_warning,
)
from ..records.notices import NoticeKind
from ..records.requests import RequestRecord
from ..scheduling.model.snapshot import Kind, Mark
from ..scheduling.model.states import State
from ..schemas import HeldOut, WarningOut

TIME_LIMIT_SECONDS = 600.0
"""How long before the end of its time limit a session is warned."""
_TIME_LIMIT_SHARE = 0.25
"""A short session is warned in this last part of its time limit."""

K = TypeVar("K")


def first_to_act(acts_at: Mapping[K, float], *, ends_at: float = inf) -> K | None:
    """Select the notice that is shown, of notices with the times at which they act.

    1. None that acts after ``ends_at``, when the request has ended anyway.
    2. The one that acts first.
    3. At the same time: the first one in the order given.
    """
    due = [name for name, at in acts_at.items() if at <= ends_at]
    return min(due, key=lambda name: acts_at[name], default=None)


def warning_out(record: RequestRecord, drain: Mark | None, *, now: float) -> WarningOut | None:
    """Return why and when a running request will be stopped; what ended has a cause."""
    if record.state not in (State.STARTING, State.RUNNING):
        return None
    lease = record.lease
    ends_at = inf if lease is None else lease.granted_at + record.seconds
    warnings = {warning.kind: warning for warning in _warnings(record, drain, ends_at, now)}
    times = {kind: warning.stops_at for kind, warning in warnings.items()}
    first = first_to_act(times, ends_at=ends_at)
    return None if first is None else warnings[first]


def held_out(record: RequestRecord, claim_by: float) -> HeldOut:
    """Return the notice of a device that is held for its owner."""
    return HeldOut(
        request_id=record.id,
        server_name=record.server_name,
        claim_by=claim_by,
        message=held_notice(record.server_name, record.devices),
    )


def shown_in_session(
    warning: WarningOut | None, held: HeldOut | None
) -> Literal["", "warning", "held"]:
    """Return which of both a session shows. A held device outlives the session that shows it."""
    times: dict[Literal["warning", "held"], float] = {}
    if warning is not None:
        times["warning"] = warning.stops_at
    if held is not None:
        times["held"] = held.claim_by
    return first_to_act(times) or ""


def _warnings(
    record: RequestRecord, drain: Mark | None, ends_at: float, now: float
) -> list[WarningOut]:
    found: list[WarningOut] = []
    if (notice := record.notice) is not None:
        found.append(
            _final("halt", notice.stops_at, halt_warning(notice.message))
            if notice.kind is NoticeKind.HALT
            else _final("preemption", notice.stops_at, notice.message)
        )
    if drain is not None and drain.until is not None:
        found.append(_final("drain", drain.until, drain_warning(drain.why)))
    early = min(TIME_LIMIT_SECONDS, record.seconds * _TIME_LIMIT_SHARE)
    # A job has no user in front of it who has to save.
    if record.kind is Kind.SESSION and now >= ends_at - early:
        found.append(_final("time_limit", ends_at, time_limit_warning(record.seconds)))
    if (warning := record.warning) is not None:
        found.append(
            WarningOut(
                kind="idle",
                stops_at=warning.stops_at,
                message=idle_warning(warning.warned_at - warning.idle_since, record.devices),
                seen=list(warning.seen),
                can_keep=record.kept_at is None,
            )
        )
    return found


def _final(
    kind: Literal["preemption", "halt", "drain", "time_limit"], stops_at: float, message: str
) -> WarningOut:
    return WarningOut(kind=kind, stops_at=stops_at, message=message, can_keep=False, final=True)
