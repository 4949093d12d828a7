"""The moves that are one decision about one request: the same words for both stores.

A store says how such a move is made to last; what it decides is in ``transitions``,
``owner_transitions`` and ``idle_transitions``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

from ...records.json_value import Json
from ...records.leases import Handle
from ...records.notices import StopNotice
from ...records.requests import Cause, RequestChange, RequestRecord
from ...scheduling.model.idleness import IdleWarning
from . import idle_transitions, owner_transitions, preemption_transitions, transitions
from .transitions import Transition

Move = Callable[[RequestRecord], Transition]


class TransitionMethods(ABC):
    """The methods of ``hub.ports.store.Store`` that move one request and do nothing else."""

    @abstractmethod
    def _wish(self, request_id: str, now: float, move: Move) -> RequestRecord:
        """Move this request, in one transaction."""

    @abstractmethod
    def _move(self, lease_id: str, now: float, move: Move) -> RequestRecord:
        """Move the request that this lease was granted to, in one transaction."""

    # -- the moves of the lifecycle -------------------------------------------------------

    def started(self, lease_id: str, handle: Handle, *, now: float) -> RequestRecord:
        return self._move(
            lease_id, now, lambda r: transitions.started(r, lease_id, handle, now=now)
        )

    def halt(self, request_id: str, cause: Cause, *, now: float) -> RequestRecord:
        return self._wish(request_id, now, lambda r: transitions.halt(r, cause, now=now))

    def notify(self, request_id: str, notice: StopNotice, *, now: float) -> RequestRecord:
        return self._wish(request_id, now, lambda r: preemption_transitions.noticed(r, notice))

    def withdraw_notice(self, request_id: str, why: str, *, now: float) -> RequestRecord:
        return self._wish(request_id, now, lambda r: preemption_transitions.withdrawn(r, why))

    def preempt(
        self, request_id: str, cause: Cause, notice: StopNotice, *, now: float
    ) -> RequestRecord:
        return self._wish(
            request_id, now, lambda r: preemption_transitions.preempted(r, cause, notice, now=now)
        )

    def finish(self, lease_id: str, *, now: float, charge_until: float) -> RequestRecord:
        return self._move(
            lease_id,
            now,
            lambda r: transitions.finish(r, lease_id, now=now, charge_until=charge_until),
        )

    def give_back(self, lease_id: str, *, now: float, charge_until: float) -> RequestRecord:
        return self._move(
            lease_id,
            now,
            lambda r: transitions.give_back(r, lease_id, now=now, charge_until=charge_until),
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
        def move(request: RequestRecord) -> Transition:
            return transitions.lose(
                request, lease_id, cause, now=now, charge_until=charge_until, requeue=requeue
            )

        return self._move(lease_id, now, move)

    def tell(
        self, request_id: str, kind: str, data: Mapping[str, Json], *, now: float
    ) -> RequestRecord:
        return self._wish(request_id, now, lambda r: transitions.told(r, kind, data))

    # -- what people change about a request that goes on ----------------------------------

    def claim(self, request_id: str, *, now: float) -> RequestRecord:
        return self._wish(request_id, now, lambda r: owner_transitions.claimed(r, now=now))

    def unclaimed(
        self, request_id: str, cause: Cause, *, now: float, charge_until: float
    ) -> RequestRecord:
        return self._wish(
            request_id,
            now,
            lambda r: owner_transitions.unclaimed(r, cause, now=now, charge_until=charge_until),
        )

    def extend(
        self, request_id: str, seconds: int, *, by: str, now: float, seen: int | None = None
    ) -> RequestRecord:
        return self._wish(
            request_id, now, lambda r: owner_transitions.extended(r, seconds, by, seen)
        )

    def change(self, request_id: str, wanted: RequestChange, *, now: float) -> RequestRecord:
        return self._wish(request_id, now, lambda r: owner_transitions.changed(r, wanted))

    # -- sessions that hold devices and do nothing ----------------------------------------

    def warn_idle(self, request_id: str, warning: IdleWarning, *, now: float) -> RequestRecord:
        return self._wish(request_id, now, lambda r: idle_transitions.warned(r, warning))

    def withdraw_warning(self, request_id: str, why: str, *, now: float) -> RequestRecord:
        return self._wish(request_id, now, lambda r: idle_transitions.withdrawn(r, why))

    def keep_idle(self, request_id: str, *, now: float) -> RequestRecord:
        return self._wish(request_id, now, lambda r: idle_transitions.kept(r, now=now))
