"""Present request records to a viewer, with devices, charges, queue position and progress."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..forecasts.advice import remaining_out
from ..interfaces.clock import Clock
from ..interfaces.run_times import RunTimes
from ..interfaces.store import Store
from ..records.identity import Viewer
from ..records.requests import RequestRecord
from ..runtime.context import Context
from ..runtime.plan_cache import PlanCache
from ..runtime.progress_cache import ProgressCache
from ..scheduling.model.plan import Wait
from ..scheduling.model.snapshot import Mark
from ..scheduling.model.states import TERMINAL, State
from ..schemas import RequestOut
from ..schemas.requests import RemainingOut
from . import serializers


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPresenter:
    """Builds response bodies from records and from data that is stored elsewhere."""

    store: Store
    plan_cache: PlanCache
    progress: ProgressCache
    run_times: RunTimes
    clock: Clock
    claim_seconds: float

    @classmethod
    def of(cls, context: Context) -> RequestPresenter:
        return cls(
            store=context.store,
            plan_cache=context.plan_cache,
            progress=context.progress,
            run_times=context.run_times,
            clock=context.clock,
            claim_seconds=context.claim_seconds,
        )

    def one(self, record: RequestRecord, viewer: Viewer) -> RequestOut:
        """Return the body of one request."""
        return self.all([record], viewer)[0]

    def all(self, records: Sequence[RequestRecord], viewer: Viewer) -> list[RequestOut]:
        """Return the bodies of several requests, with one query for each kind of data."""
        store = self.store
        leases = [record.lease for record in records if record.lease is not None]
        held = any(lease.released_at is None for lease in leases)
        with store.together():
            devices = {device.id: device for device in store.devices()} if leases else {}
            drains = dated_drains(store.marks()) if held else {}
            # A request without a lease was never charged.
            charged = store.charged([lease.request_id for lease in leases]) if leases else {}
            used = store.utilization_summaries([lease.id for lease in leases]) if leases else {}
        now = self.clock()
        return [
            serializers.request_out(
                record,
                drain=drain_of(record, drains),
                now=now,
                viewer=viewer,
                devices=devices,
                wait=self._wait_of(record),
                progress=self.progress.of(record),
                remaining=self._remaining(record, now),
                utilization=used.get(record.lease.id) if record.lease is not None else None,
                device_seconds=charged.get(record.id, 0.0) + _open_seconds(record, now),
                claim_by=claim_by(record, self.claim_seconds),
            )
            for record in records
        ]

    def brief(self, records: Sequence[RequestRecord], viewer: Viewer) -> list[RequestOut]:
        """Return the bodies of a long list, with one further query."""
        leased = any(record.lease is not None for record in records)
        devices = {each.id: each for each in self.store.devices()} if leased else {}
        now = self.clock()
        return [
            serializers.brief_out(
                record,
                viewer=viewer,
                devices=devices,
                wait=self._wait_of(record),
                progress=self.progress.of(record),
                remaining=self._remaining(record, now),
                claim_by=claim_by(record, self.claim_seconds),
            )
            for record in records
        ]

    def _remaining(self, record: RequestRecord, now: float) -> RemainingOut | None:
        found = self.run_times.remaining(record, now)
        return None if found is None else remaining_out(found)

    def _wait_of(self, record: RequestRecord) -> Wait | None:
        if record.state is State.STARTING:
            return self.plan_cache.cluster_wait_of(record.id)
        return self.plan_cache.wait_of(record.id) if record.state is State.QUEUED else None


def dated_drains(marks: Iterable[Mark]) -> Mapping[str, Mark]:
    """Return the drains that will stop running requests, by device or node."""
    return {mark.target: mark for mark in marks if mark.until is not None}


def drain_of(record: RequestRecord, drains: Mapping[str, Mark]) -> Mark | None:
    """Return the drain that will stop the request first."""
    lease = record.lease
    if lease is None or lease.released_at is not None:
        return None
    found = [drains[name] for name in (*lease.devices, lease.node) if name in drains]
    return min(found, key=lambda mark: mark.until or 0.0, default=None)


def claim_by(record: RequestRecord, window: float) -> float | None:
    """Return the end of the claim window; None unless a device is held for the owner."""
    if record.state is not State.GRANTED or not record.unclaimed or record.lease is None:
        return None
    return record.lease.granted_at + min(window, record.seconds)


def _open_seconds(record: RequestRecord, now: float) -> float:
    lease = record.lease
    if record.state in TERMINAL or lease is None or lease.released_at is not None:
        return 0.0
    return len(lease.devices) * max(0.0, now - lease.charged_until)
