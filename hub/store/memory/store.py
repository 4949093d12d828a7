"""``MemoryStore``: how requests are made and moved, on top of everything that is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ...errors import Conflict
from ...records.audit import AuditEntry
from ...records.leases import LeaseRecord
from ...records.requests import Cause, NewRequest, RequestRecord
from ...scheduling.model.plan import Start
from ...scheduling.model.snapshot import Kind
from ...scheduling.model.states import State
from ..rules import conversions, owner_transitions, transitions
from ..rules.transition_methods import Move, TransitionMethods
from .history import History
from .reading import MemoryQueries
from .shelf import own_job


class MemoryStore(TransitionMethods, MemoryQueries, History):
    """``hub.ports.store.Store`` in dictionaries."""

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
            return self._keep(transitions.queued(kept, now), now)

    # -- the moves of the lifecycle -------------------------------------------------------

    def grant(
        self, starts: Sequence[Start], *, now: float, lease_seconds: float
    ) -> tuple[LeaseRecord, ...]:
        granted = []
        with self._lock:
            room = conversions.CapacityCheck(self.groups(), self.holdings())
            devices = {device.id: device for device in self.devices()}
            held = Counter(lease.node for lease in self.leases())
            places = conversions.Nodes(self._nodes, self._board.marks(), held)
            for start in starts:
                request = self._requests.get(start.request_id)
                wanted = tuple(start.devices)
                if request is None or not transitions.grantable(
                    request, wanted, devices, self._taken()
                ):
                    continue
                node = devices[wanted[0]].node if wanted else places.choose(start)
                if node is None or not room.allows(request):
                    continue
                until = now + lease_seconds
                step = transitions.grant(request, wanted, node=node, now=now, until=until)
                lease = self._keep(step, now).lease
                if lease is not None:
                    granted.append(lease)
                    room.take(request)
                    places.take(node)
        return tuple(granted)

    def launch(self, lease_id: str, *, now: float, token_hash: str = "") -> RequestRecord:
        with self._lock:
            before = self._of_lease(lease_id)
            step = transitions.launch(before, lease_id, now=now)
            if self._tokens.get(token_hash, lease_id) != lease_id:
                raise Conflict("Another attempt has this token already.")
            self._tokens = {t: lease for t, lease in self._tokens.items() if lease != lease_id}
            if token_hash:
                self._tokens[token_hash] = lease_id
            return self._keep(step, now)

    def stop(
        self,
        request_id: str,
        target: State,
        cause: Cause,
        *,
        now: float,
        change: AuditEntry | None = None,
    ) -> RequestRecord:
        with self._lock:
            before = self.request(request_id)
            step = transitions.stop(before, target, cause, now=now)
            if step.request is not before:
                self._board.note(change)
            return self._keep(step, now)

    # -- what people change about a request that goes on ----------------------------------

    def keep_place(
        self, request_id: str, server_name: str, *, now: float, desk: NewRequest | None = None
    ) -> RequestRecord:
        with self._lock:
            before = self.request(request_id)
            step = owner_transitions.kept(before, server_name)
            name = step.request.server_name
            owner_transitions.check_name_is_free(
                before, name, self.live_session(before.owner, name)
            )
            if desk is not None and (desk.owner, desk.idempotency_key) not in self._by_key:
                self.group(desk.group)
            kept = self._keep(step, now)
            if desk is not None:
                self.submit(desk, now)
            return kept

    # -- the store itself -----------------------------------------------------------------

    def check(self) -> None:
        """It is always there."""

    def close(self) -> None:
        """Nothing to close."""

    # -- within ---------------------------------------------------------------------------

    def _wish(self, request_id: str, now: float, move: Move) -> RequestRecord:
        with self._lock:
            return self._keep(move(self.request(request_id)), now)

    def _move(self, lease_id: str, now: float, move: Move) -> RequestRecord:
        with self._lock:
            return self._keep(move(self._of_lease(lease_id)), now)
