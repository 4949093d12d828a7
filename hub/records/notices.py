"""Preemption notices: what a request is told before it is stopped."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class NoticeKind(StrEnum):
    """Why a request is preempted."""

    GUARANTEE = "guarantee"
    """Its group borrows what another group is guaranteed."""
    MOVED = "moved"
    """It holds devices of a node that another group, which is guaranteed them, needs as a whole."""
    URGENT = "urgent"
    """Urgent work comes before it."""
    BUDGET = "budget"
    """Its group has used its budget of this period."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopNotice:
    """An attempt is asked to save its work and go; if it does not, it is stopped.

    Attributes:
        message: the sentence that people read; the time stands beside it.
        stops_at: when the grace time is over.
        group: whose guarantee, whose urgent request, or whose budget.
        for_request: the preemptor; empty if no request is waiting for the devices.
    """

    kind: NoticeKind
    message: str
    given_at: float
    stops_at: float
    group: str
    for_request: str = ""

    @property
    def moved_for(self) -> str:
        """The request that it is moved for; empty where it is not moved."""
        return self.for_request if self.kind is NoticeKind.MOVED else ""

    @property
    def stopped_for(self) -> str:
        """The preemptor in all other cases."""
        return "" if self.kind is NoticeKind.MOVED else self.for_request

    @property
    def comes_back(self) -> bool:
        """Whether it is queued again, with a new attempt, in its old place."""
        return self.kind is not NoticeKind.BUDGET

    @property
    def told(self) -> dict[str, str | float | bool]:
        """What its owner, the history and the attempt itself are told."""
        return {
            "why": str(self.kind),
            "message": self.message,
            "stops_at": self.stops_at,
            "comes_back": self.comes_back,
        }
