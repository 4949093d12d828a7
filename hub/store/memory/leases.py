"""Leases, what is reported and what is charged under them, in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import fsum

from ...records.events import EventRecord, NewEvent
from ...records.leases import LeaseRecord, LeaseState
from ...records.ledger import LedgerEntry, Usage
from ...records.requests import RequestRecord
from ..rules import checks, transitions
from .shelf import MemoryTables, as_stored


class Leases(MemoryTables):
    """What is granted and released is written by ``MemoryStore``."""

    def leases(self) -> tuple[LeaseRecord, ...]:
        with self._lock:
            live = self._live.values()
            return tuple(sorted(live, key=lambda lease: (lease.granted_at, lease.id)))

    def lease(self, lease_id: str) -> LeaseRecord:
        with self._lock:
            if lease_id not in self._leases:
                raise checks.no_lease(lease_id)
            return self._leases[lease_id]

    def lease_of_token(self, token_hash: str) -> LeaseRecord:
        with self._lock:
            if token_hash not in self._tokens:
                raise checks.no_lease("of this token")
            return self._leases[self._tokens[token_hash]]

    def renew(self, lease_ids: Sequence[str], *, now: float, until: float) -> None:
        with self._lock:
            for lease in self.leases():
                if lease.id in lease_ids:
                    self._keep_lease(
                        replace(lease, state=LeaseState.LIVE, seen_at=now, expires_at=until)
                    )

    def suspect(self, lease_ids: Sequence[str]) -> None:
        with self._lock:
            for lease in self.leases():
                if lease.id in lease_ids:
                    self._keep_lease(replace(lease, state=LeaseState.SUSPECT))

    def _of_lease(self, lease_id: str) -> RequestRecord:
        return self._requests[self.lease(lease_id).request_id]

    # -- events ---------------------------------------------------------------------------

    def add_events(self, lease_id: str, events: Sequence[NewEvent]) -> tuple[EventRecord, ...]:
        with self._lock:
            request = self._of_lease(lease_id)
            epoch = transitions.newest(request, lease_id).epoch
            self._keep_lease(transitions.saved(self._leases[lease_id], events))
            added = []
            for event in events:
                if (lease_id, event.seq) in self._reported:
                    continue
                self._reported.add((lease_id, event.seq))
                data = as_stored(event.data)
                added.append(self._tell(request.id, epoch, event.at, event.kind, data))
            return tuple(added)

    def events(
        self,
        request_id: str,
        *,
        after: int = 0,
        limit: int = 1000,
        kinds: frozenset[str] | None = None,
    ) -> tuple[EventRecord, ...]:
        with self._lock:
            found = [
                event
                for event in self._events[max(0, after) :]
                if event.request_id == request_id and (kinds is None or event.kind in kinds)
            ]
            return tuple(found[: max(0, limit)])

    # -- the ledger -----------------------------------------------------------------------

    def charge(self, *, now: float) -> None:
        with self._lock:
            for lease in self.leases():
                upto = min(lease.seen_at, now)
                interval = transitions.due(lease, upto)
                self._keep_lease(transitions.charged(lease, upto))
                if interval is not None:
                    self._enter(self._requests[lease.request_id], lease, interval)

    def ledger(
        self, *, owner: str | None = None, request_id: str | None = None
    ) -> tuple[LedgerEntry, ...]:
        with self._lock:
            return tuple(
                entry
                for entry in self._ledger
                if owner in (None, entry.owner) and request_id in (None, entry.request_id)
            )

    def charged(self, request_ids: Sequence[str]) -> Mapping[str, float]:
        with self._lock:
            found: dict[str, list[float]] = {request_id: [] for request_id in request_ids}
            for entry in self._ledger:
                if entry.request_id in found:
                    found[entry.request_id].append(entry.device_seconds)
            return {request_id: fsum(parts) for request_id, parts in found.items()}

    def usage(self, *, now: float, owner: str | None = None) -> tuple[Usage, ...]:
        with self._lock:
            charged: dict[tuple[str, str], list[float]] = {}
            opened: dict[tuple[str, str], list[float]] = {}
            for entry in self.ledger(owner=owner):
                charged.setdefault((entry.owner, entry.group), []).append(entry.device_seconds)
            for lease in self.leases():
                request = self._requests[lease.request_id]
                if lease.devices and owner in (None, request.owner):
                    seconds = len(lease.devices) * max(0.0, now - lease.charged_until)
                    opened.setdefault((request.owner, request.group), []).append(seconds)
            return tuple(
                Usage(
                    owner=who,
                    group=group,
                    charged=fsum(charged.get((who, group), ())),
                    open=fsum(opened.get((who, group), ())),
                )
                for who, group in sorted({*charged, *opened})
            )
