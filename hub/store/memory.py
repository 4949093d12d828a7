"""A store that forgets when the process ends: for tests, for the simulator, for a first look.

It passes the same contract suite as the SQL store and takes every decision from the same
``moves`` and ``pool``; what is written here is only how things are remembered. One lock makes
every method a transaction, and nothing is changed before everything was checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from math import fsum

from ..errors import Conflict
from ..ports.records import (
    Cause,
    EventRecord,
    Glance,
    Handle,
    LeaseRecord,
    LeaseState,
    LedgerEntry,
    NewEvent,
    NewRequest,
    RequestFilter,
    RequestRecord,
    Touched,
    Usage,
)
from ..scheduling.lifecycle import TERMINAL, State
from ..scheduling.model import Device, Group, Health, Holding, Kind, Snapshot, Start
from . import moves, pool
from .moves import Step
from .shelf import Shelf, as_stored, matches, own_job


class MemoryStore(Shelf):
    """``hub.ports.store.Store`` in dictionaries."""

    # -- the pool and the quota tree ------------------------------------------------------

    def put_group(self, group: Group) -> None:
        with self._lock:
            pool.check_group(group, self._groups)
            self._groups[group.name] = group

    def group(self, name: str) -> Group:
        with self._lock:
            if name not in self._groups:
                raise pool.no_group(name, self._groups)
            return self._groups[name]

    def groups(self) -> tuple[Group, ...]:
        with self._lock:
            return tuple(self._groups[name] for name in sorted(self._groups))

    def set_teachers(self, group: str, teachers: Sequence[str]) -> None:
        with self._lock:
            self._teachers[self.group(group).name] = frozenset(teachers)

    def teachers(self, group: str) -> tuple[str, ...]:
        with self._lock:
            return tuple(sorted(self._teachers.get(group, ())))

    def taught_by(self, person: str) -> frozenset[str]:
        with self._lock:
            return frozenset(g for g, people in self._teachers.items() if person in people)

    def sync_devices(self, node: str, devices: Sequence[Device]) -> None:
        with self._lock:
            self._nodes.add(node)
            change = pool.inventory(node, devices, self._devices, self._taken())
            self._devices.update((device.id, device) for device in change.put)
            for name in change.remove:
                del self._devices[name]

    def set_health(self, device_id: str, health: Health, why: str) -> None:
        with self._lock:
            if device_id not in self._devices:
                raise pool.no_device(device_id)
            self._devices[device_id] = replace(self._devices[device_id], health=health, why=why)

    def devices(self) -> tuple[Device, ...]:
        with self._lock:
            order = sorted(self._devices.values(), key=lambda d: (d.node, d.index, d.id))
            return tuple(order)

    # -- requests -------------------------------------------------------------------------

    def submit(self, new: NewRequest, now: float) -> RequestRecord:
        with self._lock:
            known = self._by_key.get((new.owner, new.idempotency_key))
            if known is not None:
                return self._requests[known]
            if new.kind is Kind.SESSION:
                live = self.live_session(new.owner, new.server_name)
                if live is not None:
                    return live
            self.group(new.group)
            if new.id in self._requests:
                raise Conflict(f"There is a request {new.id} already.")
            kept = replace(new, job=own_job(new.job), labels=dict(new.labels))
            self._by_key[new.owner, new.idempotency_key] = new.id
            return self._keep(moves.queued(kept, now), now)

    def request(self, request_id: str) -> RequestRecord:
        with self._lock:
            if request_id not in self._requests:
                raise pool.no_request(request_id)
            return self._requests[request_id]

    def requests(self, which: RequestFilter) -> tuple[RequestRecord, ...]:
        with self._lock:
            newest_first = iter(reversed(self._requests.values()))
            if which.before is not None and not any(r.id == which.before for r in newest_first):
                return ()
            found = (request for request in newest_first if matches(request, which))
            return tuple(islice(found, max(0, which.limit)))

    def live_session(self, owner: str, server_name: str) -> RequestRecord | None:
        with self._lock:
            sessions = self._sessions(owner, server_name)
            return next((r for r in sessions if r.state not in TERMINAL), None)

    def session_count(self, owner: str, server_name: str) -> int:
        with self._lock:
            return len(self._sessions(owner, server_name))

    def holdings(self) -> tuple[Holding, ...]:
        with self._lock:
            return tuple(
                pool.holding(self._requests[lease.request_id], lease) for lease in self.leases()
            )

    def waiting_for_devices(self) -> int:
        with self._lock:
            waiting = (r for r in self._requests.values() if r.state is State.QUEUED)
            return sum(request.devices > 0 for request in waiting)

    def snapshot(self) -> Snapshot:
        with self._lock:
            return Snapshot(
                devices=self.devices(),
                groups=self.groups(),
                waiting=tuple(
                    pool.waiting(request)
                    for request in self._requests.values()
                    if request.state is State.QUEUED
                ),
                holdings=self.holdings(),
            )

    # -- the moves of the lifecycle -------------------------------------------------------

    def grant(
        self, starts: Sequence[Start], *, now: float, lease_seconds: float
    ) -> tuple[LeaseRecord, ...]:
        granted = []
        with self._lock:
            room = pool.Room(self.groups(), self.holdings())
            for start in starts:
                request = self._requests.get(start.request_id)
                wanted = tuple(start.devices)
                if (
                    request is None
                    or not moves.grantable(request, wanted, self._devices, self._taken())
                    or not room.allows(request)
                ):
                    continue
                on = {self._devices[name].node for name in wanted[:1]} or self._nodes
                until = now + lease_seconds
                step = moves.grant(request, wanted, node=min(on, default=""), now=now, until=until)
                lease = self._keep(step, now).lease
                if lease is not None:
                    granted.append(lease)
                    room.take(request)
        return tuple(granted)

    def launch(self, lease_id: str, *, now: float, token_hash: str = "") -> RequestRecord:
        with self._lock:
            before = self._of_lease(lease_id)
            step = moves.launch(before, lease_id, now=now)
            if self._tokens.get(token_hash, lease_id) != lease_id:
                raise Conflict("Another attempt has this token already.")
            self._tokens = {t: lease for t, lease in self._tokens.items() if lease != lease_id}
            if token_hash:
                self._tokens[token_hash] = lease_id
            return self._keep(step, now)

    def started(self, lease_id: str, handle: Handle, *, now: float) -> RequestRecord:
        return self._move(lease_id, now, lambda r: moves.started(r, lease_id, handle, now=now))

    def stop(self, request_id: str, target: State, cause: Cause, *, now: float) -> RequestRecord:
        with self._lock:
            before = self.request(request_id)
            return self._keep(moves.stop(before, target, cause, now=now), now)

    def finish(self, lease_id: str, *, now: float, charge_until: float) -> RequestRecord:
        return self._move(
            lease_id,
            now,
            lambda r: moves.finish(r, lease_id, now=now, charge_until=charge_until),
        )

    def give_back(self, lease_id: str, *, now: float, charge_until: float) -> RequestRecord:
        return self._move(
            lease_id,
            now,
            lambda r: moves.give_back(r, lease_id, now=now, charge_until=charge_until),
        )

    def lose(
        self,
        lease_id: str,
        cause: Cause,
        *,
        now: float,
        charge_until: float,
        requeue: bool = False,
    ) -> RequestRecord:
        def move(request: RequestRecord) -> Step:
            return moves.lose(
                request, lease_id, cause, now=now, charge_until=charge_until, requeue=requeue
            )

        return self._move(lease_id, now, move)

    # -- leases, events, ledger -----------------------------------------------------------

    def leases(self) -> tuple[LeaseRecord, ...]:
        with self._lock:
            live = self._live.values()
            return tuple(sorted(live, key=lambda lease: (lease.granted_at, lease.id)))

    def lease(self, lease_id: str) -> LeaseRecord:
        with self._lock:
            if lease_id not in self._leases:
                raise pool.no_lease(lease_id)
            return self._leases[lease_id]

    def lease_of_token(self, token_hash: str) -> LeaseRecord:
        with self._lock:
            if token_hash not in self._tokens:
                raise pool.no_lease("of this token")
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

    def charge(self, *, now: float) -> None:
        with self._lock:
            for lease in self.leases():
                upto = min(lease.seen_at, now)
                interval = moves.due(lease, upto)
                self._keep_lease(moves.charged(lease, upto))
                if interval is not None:
                    self._enter(self._requests[lease.request_id], lease, interval)

    def add_events(self, lease_id: str, events: Sequence[NewEvent]) -> tuple[EventRecord, ...]:
        with self._lock:
            request = self._of_lease(lease_id)
            epoch = moves.newest(request, lease_id).epoch
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

    def charged(self, request_ids: Sequence[str]) -> Mapping[str, float]:
        with self._lock:
            found: dict[str, list[float]] = {request_id: [] for request_id in request_ids}
            for entry in self._ledger:
                if entry.request_id in found:
                    found[entry.request_id].append(entry.device_seconds)
            return {request_id: fsum(parts) for request_id, parts in found.items()}

    def ledger(
        self, *, owner: str | None = None, request_id: str | None = None
    ) -> tuple[LedgerEntry, ...]:
        with self._lock:
            return tuple(
                entry
                for entry in self._ledger
                if owner in (None, entry.owner) and request_id in (None, entry.request_id)
            )

    def glance(self, after: int | None) -> Glance:
        with self._lock:
            last = len(self._events)
            newest = {event.request_id: event.id for event in self._events[after:]}
            touched = [
                Touched(request_id=r.id, owner=r.owner, group=r.group, event_id=newest[r.id])
                for r in map(self._requests.__getitem__, newest if after is not None else ())
            ]
            suspect = (x.request_id for x in self.leases() if x.state is LeaseState.SUSPECT)
            people = {person for teachers in self._teachers.values() for person in teachers}
            return Glance(
                last=last,
                touched=tuple(sorted(touched, key=lambda each: each.event_id)),
                suspect=frozenset(suspect),
                devices=self.devices(),
                holdings=self.holdings(),
                waiting=self.waiting_for_devices(),
                taught={person: self.taught_by(person) for person in people},
            )

    def close(self) -> None:
        """Nothing to close."""

    def _move(
        self, lease_id: str, now: float, move: Callable[[RequestRecord], Step]
    ) -> RequestRecord:
        with self._lock:
            before = self._of_lease(lease_id)
            return self._keep(move(before), now)

    def _of_lease(self, lease_id: str) -> RequestRecord:
        return self._requests[self.lease(lease_id).request_id]
