"""Channels and outbox entries as frozen values. Times are seconds since the epoch (UTC)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from ..schemas.notifications.events import NotificationEvent

MAIL: Final = "mail"
"""The kind of a channel of e-mail; the others are schemes of Apprise."""
MOST_REFUSALS: Final = 3
"""Messages in a row that are refused for good, after which a channel is not used any more."""


class OutboxState(StrEnum):
    """Whether an entry is still to be sent."""

    WAITING = "waiting"
    SENT = "sent"
    DROPPED = "dropped"
    """Given up: it expired, the channel refused it, or the limit of the day was reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """One way to reach a user.

    Attributes:
        kind: ``MAIL``, or the scheme of the service.
        sealed: an e-mail address or the URL of Apprise, encrypted: who knows the address of a
            webhook can write to it.
        shown: as much of it as its owner needs to recognize it.
        confirmed_at: when its owner confirmed it; only a chosen e-mail address needs that.
        problem: why the last message was not delivered, as a sentence; empty if it was.
        refusals: messages in a row that were refused for good.
        failures: attempts in a row that failed and are repeated, with one whose outcome is unknown.
        next_at: no message before this time: the pause after a failure, and between two digests.
        chosen: since when it tells of which event.
    """

    id: str
    owner: str
    kind: str
    sealed: str = field(repr=False)
    shown: str
    created_at: float
    confirmed_at: float | None = None
    problem: str = ""
    refusals: int = 0
    failures: int = 0
    next_at: float = 0.0
    last_sent_at: float | None = None
    chosen: Mapping[NotificationEvent, float] = field(default_factory=dict)

    @property
    def stopped(self) -> bool:
        """Whether it is not used until a test message arrives."""
        return self.refusals >= MOST_REFUSALS

    @property
    def usable(self) -> bool:
        return self.confirmed_at is not None and not self.stopped


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEntry:
    """A notification for one channel.

    Attributes:
        key: what happened; a channel is told of it once.
        text: one sentence or two.
        path: of the page about it, below the prefix of the service.
        due_at: when it is sent at the latest, unless the channel pauses; others are sent with it.
        expires_at: when it is given up.
    """

    channel: str
    event: NotificationEvent
    key: str
    text: str
    path: str
    at: float
    due_at: float
    expires_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxEntry(NewEntry):
    """A stored notification."""

    id: int
    state: OutboxState
    why: str = ""
    done_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestEvent:
    """An event of a request whose owner may be notified of it."""

    id: int
    request_id: str
    epoch: int
    owner: str
    at: float
    kind: str
    data: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedFeedback:
    """Feedback on a submission of a user."""

    submission: int
    owner: str
    course: str
    assignment: str
    released_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PausedSchedule:
    """A schedule of a user that the service has paused."""

    id: str
    owner: str
    what: str
    paused_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxCensus:
    """Numbers for metrics.

    Attributes:
        entries: by state, of the kept entries.
        oldest_due: the earliest time at which a waiting entry was due; None without one.
        failing: channels whose last message was not delivered.
    """

    entries: Mapping[OutboxState, int]
    oldest_due: float | None
    failing: int
