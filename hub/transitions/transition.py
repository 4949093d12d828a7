"""``Transition``: the request after a transition, and the events and charges that go with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..records.audit import AuditEntry
from ..records.json_value import Json
from ..records.requests import Cause, RequestRecord
from ..scheduling.model.states import Move, State
from ..scheduling.quota import accounting

COMES_BACK: Mapping[State, Move] = MappingProxyType(
    {State.HALTED: Move.HALT, State.PREEMPTED: Move.PREEMPT}
)
"""States on the way from ``stopping`` back to the queue, each with its move."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseInterval:
    """A span in which a lease held devices, to be charged."""

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
    """What a store has to write for one transition, in one transaction.

    Attributes:
        request: as it is afterwards, its lease included.
        at: the time of the events.
        entered: the states that it went into, in order; each becomes an event.
        charge: the interval to be charged.
        credit: whether everything that the lease was charged is credited.
        lost: why the attempt ended, if the request itself goes on.
        told: other events, after those of the states.
        audit: the line of the audit list.
    """

    request: RequestRecord
    at: float
    entered: tuple[State, ...] = ()
    charge: LeaseInterval | None = None
    credit: bool = False
    lost: Cause | None = None
    told: tuple[EventDraft, ...] = ()
    audit: AuditEntry | None = None


def event_data(step: Transition, state: State) -> dict[str, Json]:
    """Return the data of the event for one entered state."""
    data: dict[str, Json] = {"state": str(state)}
    cause, lease = step.request.cause, step.request.lease
    if state in (State.LOST, *COMES_BACK) and step.lost is not None:
        cause = step.lost
    if cause is not None:
        data["cause"] = {"code": str(cause.code), "message": cause.message}
    if state is State.GRANTED and lease is not None:
        data |= {"lease": lease.id, "devices": list(lease.devices)}
    return data
