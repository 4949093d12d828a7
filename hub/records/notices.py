"""Notices, which warn a request before it is stopped."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class NoticeKind(StrEnum):
    """Why a request is stopped."""

    GUARANTEE = "guarantee"
    """Its group borrows devices of another group's guaranteed quota."""
    MOVED = "moved"
    """It is relocated, since another group needs the whole node for its guaranteed quota."""
    URGENT = "urgent"
    """An urgent request needs its devices."""
    BUDGET = "budget"
    """Its group has used its budget of this period."""
    HALT = "halt"
    """A user halts it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopNotice:
    """Asks an attempt to save its work and end; it is stopped after the grace period.

    Attributes:
        message: the sentence for users; views show the time beside it.
        stops_at: the end of the grace period.
        group: the group whose guaranteed quota, urgent request or budget is the reason; empty for
            a halt.
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
        """The request that it is relocated for; empty if it is not relocated."""
        return self.for_request if self.kind is NoticeKind.MOVED else ""

    @property
    def stopped_for(self) -> str:
        """The preemptor, if it is not relocated; else empty."""
        return "" if self.kind is NoticeKind.MOVED else self.for_request

    @property
    def comes_back(self) -> bool:
        """Whether the request is queued again at its old position."""
        return self.kind not in (NoticeKind.BUDGET, NoticeKind.HALT)

    @property
    def data(self) -> dict[str, str | float | bool]:
        """The notice as JSON for events and for the attempt."""
        return {
            "why": str(self.kind),
            "message": self.message,
            "stops_at": self.stops_at,
            "comes_back": self.comes_back,
        }
