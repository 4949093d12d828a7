"""Events of a request, and a digest of what changed since an event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..scheduling.model.snapshot import Allocation, Device, PendingRequest
from .json_value import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvent:
    """An event that an attempt reports; ``seq`` counts from 1 within the attempt."""

    seq: int
    at: float
    kind: str
    data: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRecord:
    """An event in a request's history; ``id`` grows over all requests.

    Kinds: ``state`` (data: state, cause); actions of users: ``kept``, ``claimed``,
    ``extended``, ``changed``; of an idle session: ``idle_warning``, ``idle_over``
    and ``idle_kept``; ``notice`` before a preemption; ``budget_low`` when little is left of the
    group's budget; ``job_sign`` and ``job_sign_over`` about a sign of a job;
    and the reports of the runner: ``cells``, ``cell_started``, ``cell_output``, ``cell_failed``,
    ``cell_finished``, ``progress``, ``cut``, ``saved``, ``ended``.
    """

    id: int
    request_id: str
    epoch: int
    at: float
    kind: str
    data: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """A changed request: its newest event, and the owner and group that decide who may see it."""

    request_id: str
    owner: str
    group: str
    event_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeDigest:
    """The data that decides which users are notified; read in one transaction.

    Attributes:
        last: id of the newest event of all.
        touched: requests with events after the given one.
        suspect: requests whose lease has expired without a heartbeat.
        waiting: number of queued requests with devices.
        queued: all queued requests.
        taught: groups by their teacher.
    """

    last: int
    touched: tuple[Touched, ...]
    suspect: frozenset[str]
    devices: tuple[Device, ...]
    allocations: tuple[Allocation, ...]
    waiting: int
    taught: Mapping[str, frozenset[str]]
    queued: tuple[PendingRequest, ...] = ()
