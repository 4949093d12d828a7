"""Records as the people who look at them may see them, with what else is known of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..interfaces.clock import Clock
from ..interfaces.store import Store
from ..inventory.pool import pool_of
from ..records.identity import Viewer
from ..records.requests import RequestFilter, RequestRecord
from ..runtime.plan_cache import PlanCache
from ..runtime.progress_cache import ProgressCache
from ..scheduling.model.plan import Wait
from ..scheduling.model.snapshot import Mark
from ..scheduling.model.states import TERMINAL, State
from ..schemas import PoolOut, QueueOut, RequestOut
from . import serializers


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPresenter:
    """Reads what belongs to a record elsewhere: devices, charges, place, progress."""

    store: Store
    plan_cache: PlanCache
    progress: ProgressCache
    clock: Clock
    claim_seconds: float

    def one(self, record: RequestRecord, viewer: Viewer) -> RequestOut:
        return self.all([record], viewer)[0]

    def all(self, records: Sequence[RequestRecord], viewer: Viewer) -> list[RequestOut]:
        store = self.store
        leases = [record.lease for record in records if record.lease is not None]
        held = any(lease.released_at is None for lease in leases)
        with store.together():
            devices = {device.id: device for device in store.devices()} if leases else {}
            drains = dated_drains(store.marks()) if held else {}
            # Whatever never had a lease cost nothing.
            charged = store.charged([lease.request_id for lease in leases]) if leases else {}
        now = self.clock()
        return [
            serializers.request_out(
                record,
                drain=drain_of(record, drains),
                viewer=viewer,
                devices=devices,
                wait=self._wait_of(record),
                progress=self.progress.of(record),
                device_seconds=charged.get(record.id, 0.0) + _open_seconds(record, now),
                claim_by=claim_by(record, self.claim_seconds),
            )
            for record in records
        ]

    def brief(self, records: Sequence[RequestRecord], viewer: Viewer) -> list[RequestOut]:
        """Only what a long list shows of each: for that nothing more is read."""
        return [
            serializers.brief_out(
                record,
                viewer=viewer,
                wait=self._wait_of(record),
                progress=self.progress.of(record),
                claim_by=claim_by(record, self.claim_seconds),
            )
            for record in records
        ]

    def _wait_of(self, record: RequestRecord) -> Wait | None:
        return self.plan_cache.wait_of(record.id) if record.state is State.QUEUED else None

    def pool(self, viewer: Viewer) -> PoolOut:
        store = self.store
        with store.together():
            seen = store.devices(), store.holdings(), store.waiting_for_devices()
        return pool_of(*seen, viewer)

    def queue(self, viewer: Viewer, limit: int) -> QueueOut:
        """The head of the queue, as the last cycle left it."""
        waits = self.plan_cache.queue(limit)
        found = self.store.requests(
            RequestFilter(ids=frozenset(wait.request_id for wait in waits), limit=limit)
        )
        # One that was granted or cancelled since does not wait any more.
        waiting = {record.id: record for record in found if record.state is State.QUEUED}
        return QueueOut(
            queue=[
                serializers.queue_entry_out(wait, waiting[wait.request_id], viewer)
                for wait in waits
                if wait.request_id in waiting
            ],
            total=max(len(waiting), self.plan_cache.waiting),
        )


def dated_drains(marks: Iterable[Mark]) -> Mapping[str, Mark]:
    """Of devices and nodes on which what is left will be stopped."""
    return {mark.target: mark for mark in marks if mark.until is not None}


def drain_of(record: RequestRecord, drains: Mapping[str, Mark]) -> Mark | None:
    """The one that will stop it first."""
    lease = record.lease
    if lease is None or lease.released_at is not None:
        return None
    found = [drains[name] for name in (*lease.devices, lease.node) if name in drains]
    return min(found, key=lambda mark: mark.until or 0.0, default=None)


def claim_by(record: RequestRecord, window: float) -> float | None:
    """Until when its device is held for its owner; None where nothing is held."""
    if record.state is not State.GRANTED or not record.unclaimed or record.lease is None:
        return None
    return record.lease.granted_at + min(window, record.seconds)


def _open_seconds(record: RequestRecord, now: float) -> float:
    lease = record.lease
    if record.state in TERMINAL or lease is None or lease.released_at is not None:
        return 0.0
    return len(lease.devices) * max(0.0, now - lease.charged_until)
