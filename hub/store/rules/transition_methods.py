"""The moves that are one decision about one request: the same words for both stores.

A store says how such a move is made to last; what it decides is in ``moves``, ``wishes`` and
``idle_moves``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

from ...records.json_value import Json
from ...records.leases import Handle
from ...records.notices import Notice
from ...records.requests import Cause, RequestRecord, Wanted
from ...scheduling.model.idleness import IdleWarning
from . import idle_transitions as idle_moves
from . import owner_transitions as wishes
from . import preemption_transitions as notice_moves
from . import transitions as moves
from .transitions import Step

Move = Callable[[RequestRecord], Step]


class Moving(ABC):
    """The methods of ``hub.ports.store.Store`` that move one request and do nothing else."""

    @abstractmethod
    def _wish(self, request_id: str, now: float, move: Move) -> RequestRecord:
        """Move this request, in one transaction."""

    @abstractmethod
    def _move(self, lease_id: str, now: float, move: Move) -> RequestRecord:
        """Move the request that this lease was granted to, in one transaction."""

    # -- the moves of the lifecycle -------------------------------------------------------

    def started(self, lease_id: str, handle: Handle, *, now: float) -> RequestRecord:
        return self._move(lease_id, now, lambda r: moves.started(r, lease_id, handle, now=now))

    def halt(self, request_id: str, cause: Cause, *, now: float) -> RequestRecord:
        return self._wish(request_id, now, lambda r: moves.halt(r, cause, now=now))

    def notify(self, request_id: str, notice: Notice, *, now: float) -> RequestRecord:
        return self._wish(request_id, now, lambda r: notice_moves.noticed(r, notice))

    def withdraw_notice(self, request_id: str, why: str, *, now: float) -> RequestRecord:
        return self._wish(request_id, now, lambda r: notice_moves.withdrawn(r, why))

    def preempt(
        self, request_id: str, cause: Cause, notice: Notice, *, now: float
    ) -> RequestRecord:
        return self._wish(
            request_id, now, lambda r: notice_moves.preempted(r, cause, notice, now=now)
        )

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

    def tell(
        self, request_id: str, kind: str, data: Mapping[str, Json], *, now: float
    ) -> RequestRecord:
        return self._wish(request_id, now, lambda r: moves.told(r, kind, data))

    # -- what people change about a request that goes on ----------------------------------

    def claim(self, request_id: str, *, now: float) -> RequestRecord:
        return self._wish(request_id, now, lambda r: wishes.claimed(r, now=now))

    def unclaimed(
        self, request_id: str, cause: Cause, *, now: float, charge_until: float
    ) -> RequestRecord:
        return self._wish(
            request_id,
            now,
            lambda r: wishes.unclaimed(r, cause, now=now, charge_until=charge_until),
        )

    def extend(
        self, request_id: str, seconds: int, *, by: str, now: float, seen: int | None = None
    ) -> RequestRecord:
        return self._wish(request_id, now, lambda r: wishes.extended(r, seconds, by, seen))

    def change(self, request_id: str, wanted: Wanted, *, now: float) -> RequestRecord:
        return self._wish(request_id, now, lambda r: wishes.changed(r, wanted))

    # -- sessions that hold devices and do nothing ----------------------------------------

    def warn_idle(self, request_id: str, warning: IdleWarning, *, now: float) -> RequestRecord:
        return self._wish(request_id, now, lambda r: idle_moves.warned(r, warning))

    def withdraw_warning(self, request_id: str, why: str, *, now: float) -> RequestRecord:
        return self._wish(request_id, now, lambda r: idle_moves.withdrawn(r, why))

    def keep_idle(self, request_id: str, *, now: float) -> RequestRecord:
        return self._wish(request_id, now, lambda r: idle_moves.kept(r, now=now))
