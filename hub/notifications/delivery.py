"""Send what is due: one message for all entries of a channel, with retries and limits.

* A channel pauses for ten minutes between two ordinary messages; entries that need an answer at
  once are sent without a pause, with everything that waits.
* After a failure it pauses for a minute, then twice as long each time, an hour at most. An entry
  is given up when it expires, after a day at the latest. The pause is stored before an attempt, so
  that it also holds if the outcome cannot be stored.
* A message that is refused for good is not repeated. After three of them in a row the channel is
  stopped until a test message arrives.
* A user gets a limited number of messages in 24 hours; further entries are given up. Attempts that
  failed do not count.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ..config.notification_table import NotificationTable
from ..interfaces.clock import Clock
from ..messages import notifications as messages
from ..messages.notifications import MessageLine, MessageText
from ..messages.units import count
from ..schemas.notifications.events import NotificationEvent
from .channel_store import ChannelStore
from .links import MessageLinks
from .outbox_store import OutboxStore
from .records import Channel, OutboxEntry, OutboxState
from .sender import Sender, SendResult

log = logging.getLogger(__name__)

PAUSE_SECONDS: Final = 600.0
"""Between two ordinary messages of a channel."""
_FIRST_RETRY: Final = 60.0
_LAST_RETRY: Final = 3600.0
_MOST_DOUBLINGS: Final = 10
_EXPIRED: Final = "It was not delivered in time."
_UNUSED: Final = "The channel is not used until you test it."


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationDelivery:
    """Delivers the entries of one channel at a time; several threads may do so for others."""

    channels: ChannelStore
    outbox: OutboxStore
    sender: Sender
    links: MessageLinks
    table: NotificationTable
    clock: Clock

    def due(self) -> tuple[str, ...]:
        """Return the channels for which something is to be done now."""
        return self.outbox.due(self.clock(), pause=PAUSE_SECONDS)

    def deliver(self, channel_id: str) -> None:
        """Send all waiting entries of a channel as one message."""
        now = self.clock()
        channel = self.channels.channel(channel_id)
        entries = self._current(self.outbox.waiting(channel_id), now)
        if channel is None or not entries:
            return
        if not channel.usable:
            self._drop(entries, _UNUSED, now)
            return
        if self.outbox.messages_of_day(channel.owner, now) >= self.table.per_day:
            limit = count(self.table.per_day, "message")
            self._drop(entries, f"The limit of {limit} in 24 hours was reached.", now)
            return
        self.channels.change(channel.id, lambda found: attempted(found, now))
        text, headers = self._text(channel, entries), self._headers(channel, entries)
        result = self.sender.send(channel, text, headers)
        self._record(channel, entries, result)

    def _current(self, entries: Sequence[OutboxEntry], now: float) -> list[OutboxEntry]:
        """Give up what is not of interest any more; return the others."""
        expired = [entry for entry in entries if entry.expires_at <= now]
        if expired:
            self._drop(expired, _EXPIRED, now)
        return [entry for entry in entries if entry.expires_at > now]

    def _drop(self, entries: Sequence[OutboxEntry], why: str, now: float) -> None:
        ids = [entry.id for entry in entries]
        self.outbox.finish(ids, OutboxState.DROPPED, now=now, why=why)

    def _text(self, channel: Channel, entries: Sequence[OutboxEntry]) -> MessageText:
        urgent_first = sorted(entries, key=lambda entry: entry.due_at > entry.at)
        lines = [
            MessageLine(event=entry.event, text=entry.text, url=self.links.page(entry.path))
            for entry in urgent_first
        ]
        stops = {event: self.links.stop(channel.id, event) for event in NotificationEvent}
        return messages.message(lines, stops, self.links.settings)

    def _headers(self, channel: Channel, entries: Sequence[OutboxEntry]) -> dict[str, str]:
        """Return the headers of RFC 2369 and RFC 8058, which mail programs show as a button."""
        events = {entry.event for entry in entries}
        stop = self.links.stop(channel.id, events.pop() if len(events) == 1 else None)
        return {
            "List-Unsubscribe": f"<{stop}>",
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
        }

    def _record(self, channel: Channel, entries: Sequence[OutboxEntry], result: SendResult) -> None:
        now = self.clock()
        ids = [entry.id for entry in entries]
        if result.delivered:
            self.outbox.record_message(channel.owner, now)
            self.outbox.finish(ids, OutboxState.SENT, now=now)
        elif result.refused:
            self.outbox.finish(ids, OutboxState.DROPPED, now=now, why=result.sentence)
        if not result.delivered:
            # The sentence may contain the address.
            log.warning("a message to the channel %s was not delivered", channel.id)
        self.channels.change(channel.id, lambda found: after(found, result, now))


def attempted(channel: Channel, now: float) -> Channel:
    """Return the channel before the outcome of an attempt is known: with the pause of a failure."""
    doublings = min(channel.failures, _MOST_DOUBLINGS)
    pause = min(_FIRST_RETRY * 2**doublings, _LAST_RETRY)
    return replace(channel, failures=channel.failures + 1, next_at=now + pause)


def after(channel: Channel, result: SendResult, now: float) -> Channel:
    """Return an ``attempted`` channel with the outcome."""
    if result.delivered:
        return replace(
            channel,
            problem="",
            refusals=0,
            failures=0,
            last_sent_at=now,
            next_at=0.0,
        )
    if result.refused:
        return replace(
            channel,
            problem=result.sentence,
            refusals=channel.refusals + 1,
            failures=0,
            next_at=now + PAUSE_SECONDS,
        )
    return replace(channel, problem=result.sentence)
