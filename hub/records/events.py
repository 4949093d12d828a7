"""Events of a request, and a digest of what changed since an event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..scheduling.model.snapshot import Allocation, Device
from .json_value import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvent:
    """Something that an attempt reports; ``seq`` counts from 1 within the attempt."""

    seq: int
    at: float
    kind: str
    data: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRecord:
    """A line of a request's history; ``id`` grows over all requests.

    Kinds: ``state`` (data: state, cause), what people do to it: ``kept``, ``claimed``,
    ``extended``, ``changed``, of an idle session ``idle_warning``, ``idle_over``
    and ``idle_kept``, ``notice`` where it is to be preempted, ``budget_low`` where little
    is left of its group's budget, and what the runner reports: ``cells``,
    ``cell_started``, ``cell_output``, ``cell_failed``, ``cell_finished``,
    ``progress``, ``cut``, ``saved``, ``ended``.
    """

    id: int
    request_id: str
    epoch: int
    at: float
    kind: str
    data: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """A request to which something happened: its newest event, and who may hear of it."""

    request_id: str
    owner: str
    group: str
    event_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeDigest:
    """Enough to know for which users there is news; read in one transaction.

    Attributes:
        last: id of the newest event of all.
        touched: requests with events later than the one that was asked about.
        suspect: requests whose lease has shown no sign of life for a while.
        waiting: how many queued requests ask for devices.
        taught: groups by their teacher.
    """

    last: int
    touched: tuple[Touched, ...]
    suspect: frozenset[str]
    devices: tuple[Device, ...]
    allocations: tuple[Allocation, ...]
    waiting: int
    taught: Mapping[str, frozenset[str]]
