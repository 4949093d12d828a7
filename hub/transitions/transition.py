"""The result of a transition: the changed request with its events, charges and audit entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..records.audit import AuditEntry
from ..records.error_classes import error_class
from ..records.json_value import Json
from ..records.requests import Cause, RequestRecord
from ..scheduling.model.states import Move, State
from ..scheduling.quota import accounting

COMES_BACK: Mapping[State, Move] = MappingProxyType(
    {State.HALTED: Move.HALT, State.PREEMPTED: Move.PREEMPT}
)
"""States from which a stopping request is queued again, each with its move."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseInterval:
    """An interval in which a lease held devices, to be charged."""

    starts_at: float
    ends_at: float
    devices: int

    @property
    def device_seconds(self) -> float:
        return accounting.device_seconds(self.devices, self.starts_at, self.ends_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDraft:
    """An event other than a change of state."""

    kind: str
    data: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """The changes that a store writes for one transition, in one transaction.

    Attributes:
        request: the request after the transition, with its lease.
        at: the time of the events.
        entered: the states that the request entered, in order; each becomes an event.
        charge: the interval to charge.
        credit: whether the whole charge of the lease is credited.
        lost: why the attempt ended, if the request itself continues.
        events: other events, after those of the states.
        audit: the audit entry.
    """

    request: RequestRecord
    at: float
    entered: tuple[State, ...] = ()
    charge: LeaseInterval | None = None
    credit: bool = False
    lost: Cause | None = None
    events: tuple[EventDraft, ...] = ()
    audit: AuditEntry | None = None


def event_data(step: Transition, state: State) -> dict[str, Json]:
    """Return the data of the event for one entered state."""
    data: dict[str, Json] = {"state": str(state)}
    cause, lease = step.request.cause, step.request.lease
    if step.lost is not None and (
        state in (State.LOST, *COMES_BACK) or step.entered == (State.QUEUED,)
    ):
        cause = step.lost
    if cause is not None:
        found = error_class(cause.code)
        data["cause"] = {"code": str(cause.code), "message": cause.message} | (
            {"class": str(found)} if found else {}
        )
    if state is State.QUEUED and step.request.not_before is not None:
        data["not_before"] = step.request.not_before
    if state is State.GRANTED and lease is not None:
        data |= {"lease": lease.id, "devices": list(lease.devices)}
    return data
