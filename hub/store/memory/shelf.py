"""How a store in memory remembers: one dictionary for each kind of thing."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from math import fsum
from threading import RLock

from ...records.calendar import Reservation, Term
from ...records.events import EventRecord
from ...records.images import Pin
from ...records.json_value import Json
from ...records.leases import LeaseRecord, LeaseState
from ...records.ledger import LedgerEntry, LedgerKind
from ...records.requests import JobSpec, RequestFilter, RequestRecord
from ...records.usage import Capacity
from ...scheduling.model.snapshot import Device, Group, Kind
from ...scheduling.quota.accounting import HALF_LIFE
from ..rules import transitions
from ..rules.transitions import LeaseInterval, Transition
from .noticeboard import MemoryMarks


class MemoryTables:
    """The dictionaries of ``MemoryStore``, and the few ways in which they change."""

    def __init__(self, *, half_life: float = HALF_LIFE) -> None:
        self._half_life = half_life
        self._lock = RLock()
        self._groups: dict[str, Group] = {}
        self._teachers: dict[str, frozenset[str]] = {}
        self._nodes: set[str] = set()
        self._devices: dict[str, Device] = {}
        # In the order of submission, each with its newest lease in it.
        self._requests: dict[str, RequestRecord] = {}
        self._by_key: dict[tuple[str, str], str] = {}
        self._leases: dict[str, LeaseRecord] = {}
        self._live: dict[str, LeaseRecord] = {}
        self._tokens: dict[str, str] = {}
        self._reported: set[tuple[str, int]] = set()
        self._events: list[EventRecord] = []
        self._ledger: list[LedgerEntry] = []
        self._board = MemoryMarks()
        self._terms: dict[str, Term] = {}
        self._reservations: dict[str, Reservation] = {}
        self._pins: dict[tuple[str, str], Pin] = {}
        self._capacity: list[Capacity] = []

    def _keep(self, step: Transition, now: float) -> RequestRecord:
        request = step.request
        self._requests[request.id] = request
        if request.lease is not None:
            self._keep_lease(request.lease)
            if step.charge is not None:
                self._enter(request, request.lease, step.charge)
            if step.credit:
                self._credit(request.lease)
        for state in step.entered:
            epoch = transitions.epoch_of(request)
            self._tell(request.id, epoch, now, "state", transitions.event_data(step, state))
        for told in step.told:
            self._tell(request.id, transitions.epoch_of(request), now, told.kind, told.data)
        return request

    def _keep_lease(self, lease: LeaseRecord) -> None:
        self._leases[lease.id] = lease
        if lease.state is LeaseState.RELEASED:
            self._live.pop(lease.id, None)
        else:
            self._live[lease.id] = lease
        request = self._requests[lease.request_id]
        self._requests[request.id] = replace(request, lease=lease)

    def _tell(
        self, request_id: str, epoch: int, at: float, kind: str, data: Mapping[str, Json]
    ) -> EventRecord:
        event = EventRecord(
            id=len(self._events) + 1,
            request_id=request_id,
            epoch=epoch,
            at=at,
            kind=kind,
            data=data,
        )
        self._events.append(event)
        return event

    def _enter(self, request: RequestRecord, lease: LeaseRecord, interval: LeaseInterval) -> None:
        self._ledger.append(
            LedgerEntry(
                id=len(self._ledger) + 1,
                lease_id=lease.id,
                request_id=request.id,
                epoch=lease.epoch,
                owner=request.owner,
                group=request.group,
                devices=interval.devices,
                starts_at=interval.starts_at,
                ends_at=interval.ends_at,
                device_seconds=interval.device_seconds,
            )
        )

    def _credit(self, lease: LeaseRecord) -> None:
        lines = [entry for entry in self._ledger if entry.lease_id == lease.id]
        if lines:
            back = replace(
                lines[0],
                id=len(self._ledger) + 1,
                ends_at=lines[-1].ends_at,
                device_seconds=-fsum(entry.device_seconds for entry in lines),
                kind=LedgerKind.CREDIT,
            )
            self._ledger.append(back)

    def _sessions(self, owner: str, server_name: str) -> list[RequestRecord]:
        return [
            request
            for request in self._requests.values()
            if request.kind is Kind.SESSION
            and (request.owner, request.server_name) == (owner, server_name)
        ]

    def _taken(self) -> Collection[str]:
        return {device for lease in self._live.values() for device in lease.devices}


def matches(request: RequestRecord, which: RequestFilter) -> bool:
    return (
        which.owner in (None, request.owner)
        and (which.groups is None or request.group in which.groups)
        and (which.node is None or (request.lease is not None and request.lease.node == which.node))
        and which.kind in (None, request.kind)
        and (which.states is None or request.state in which.states)
        and which.server_name in (None, request.server_name)
        and (which.reader in (None, request.owner) or request.group in which.reader_groups)
        and (which.ids is None or request.id in which.ids)
        and which.labels.items() <= request.labels.items()
        and (which.text is None or _says(request, which.text))
    )


def _says(request: RequestRecord, text: str) -> bool:
    job = request.job
    words = (request.id, request.server_name, *((job.notebook_name, *job.command) if job else ()))
    return any(text.casefold() in word.casefold() for word in words)


def as_stored(data: Mapping[str, Json]) -> dict[str, Json]:
    """A copy of its own, of the types that come back from a database."""
    stored: dict[str, Json] = json.loads(json.dumps(data))
    return stored


def own_job(job: JobSpec | None) -> JobSpec | None:
    return None if job is None else replace(job, parameters=as_stored(job.parameters))
