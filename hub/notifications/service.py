"""The channels of a user: add, choose events, test, remove; and the links of messages."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from ..config.notification_table import NotificationTable
from ..errors import NotFound, OverMaximum, TooManyCalls, Unavailable
from ..interfaces.clock import Clock
from ..messages import notifications as messages
from ..messages.units import count
from ..records.identity import Identity, require_admin
from ..schemas.notifications.bodies import (
    ChannelIn,
    ChannelOut,
    ChannelsOut,
    DeliveryTestIn,
    DeliveryTestOut,
    DeliveryTestsOut,
    DroppedOut,
)
from ..schemas.notifications.events import NotificationEvent
from .address_seal import AddressSeal
from .addresses import check_address, offer, shortened
from .channel_store import ChannelStore
from .delivery import after, attempted
from .links import MessageLinks
from .outbox_store import OutboxStore
from .records import Channel, OutboxCensus
from .sender import Sender, SendResult

_MOST_TESTS: Final = 4
"""Test messages that may be sent at the same time: each uses a thread of the pages."""
_SHOWN_DROPPED: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class StopLink:
    """What an unsubscribe link stops: one event on a channel, or all. ``done``: it does already."""

    channel: ChannelOut | None
    event: NotificationEvent | None
    done: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationService:
    """Operations of users on their own channels."""

    channels: ChannelStore
    outbox: OutboxStore
    sender: Sender
    seal: AddressSeal
    links: MessageLinks
    table: NotificationTable
    clock: Clock
    _tests: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(_MOST_TESTS))

    def all(self, who: Identity) -> ChannelsOut:
        """Return the caller's channels, and what the site offers."""
        return ChannelsOut(
            channels=self._shown(self.channels.channels(who.name)),
            available=self.table.available,
            sentence=offer(self.table, who.name),
            own_address=self.table.mail_of(who.name),
            dropped=[
                DroppedOut(event=each.event, text=each.text, at=each.at, why=each.why)
                for each in self.outbox.dropped(who.name, limit=_SHOWN_DROPPED)
            ],
        )

    def add(self, who: Identity, body: ChannelIn) -> ChannelOut:
        """Add a channel; an e-mail address that the user chose gets a link for confirmation.

        A channel that cannot be decrypted any more is replaced by one that is shown alike.

        Raises:
            InvalidInput: the address is malformed or not allowed.
            OverMaximum: the user has too many channels, or got too many messages today.
        """
        checked, now = check_address(body.address, who.name, self.table), self.clock()
        shown = shortened(checked.kind, checked.address)
        lost = None
        for known in self.channels.channels(who.name):
            address = self._address(known)
            if address == checked.address:
                events = {*known.chosen, *body.events}
                self.channels.choose(who.name, known.id, events, now=now)
                return self._one(who.name, known.id)
            if address is None and (known.kind, known.shown) == (checked.kind, shown):
                lost = known
        if not checked.confirmed:
            self._check_limit(who.name)
        channel_id = f"n-{secrets.token_hex(5)}"
        channel = Channel(
            id=channel_id,
            owner=who.name,
            kind=checked.kind,
            sealed=self.seal.close(channel_id, checked.address),
            shown=shown,
            created_at=now,
            confirmed_at=now if checked.confirmed else None,
            chosen=dict.fromkeys([*body.events, *(lost.chosen if lost else ())], now),
        )
        if lost:
            self.channels.remove(who.name, lost.id)
        self.channels.add(channel)
        if not checked.confirmed:
            self._test(channel)
        return self._one(who.name, channel.id)

    def choose(
        self, who: Identity, channel_id: str, events: Iterable[NotificationEvent]
    ) -> ChannelOut:
        """Replace the events of a channel. Raises NotFound."""
        self.channels.choose(who.name, channel_id, events, now=self.clock())
        return self._one(who.name, channel_id)

    def remove(self, who: Identity, channel_id: str) -> None:
        """Delete a channel with everything that waits for it. Raises NotFound."""
        self.channels.remove(who.name, channel_id)

    def test(self, who: Identity, body: DeliveryTestIn) -> DeliveryTestsOut:
        """Send a test message now, and return what became of it.

        Raises:
            Forbidden: the channels are those of another user, and the caller is no administrator.
            NotFound: the user has no such channel, or none at all.
            OverMaximum: the user got too many messages today.
        """
        user = body.user or who.name
        if user != who.name:
            require_admin(who)
        found = self.channels.channels(user)
        if body.channel:
            found = tuple(channel for channel in found if channel.id == body.channel)
        if not found:
            whose = "You have" if user == who.name else f"{user[:80]} has"
            raise NotFound(
                f"{whose} no such channel." if body.channel else f"{whose} no channel.",
                accepted="Add one with: carrel notify set ADDRESS",
            )
        return DeliveryTestsOut(results=[self._test(channel) for channel in found])

    # -- links of messages ----------------------------------------------------------------

    def stop_link(self, code: str) -> StopLink:
        """Return what a link stops. Raises NotFound if it is not valid."""
        channel_id, event = self.links.read_stop(code)
        channel = self.channels.channel(channel_id)
        if channel is None:
            return StopLink(channel=None, event=event, done=True)
        done = event not in channel.chosen if event else not channel.chosen
        return StopLink(channel=self._shown((channel,))[0], event=event, done=done)

    def stop(self, code: str) -> None:
        """Stop the messages that a link names. Idempotent. Raises NotFound if it is not valid."""
        channel_id, event = self.links.read_stop(code)
        channel = self.channels.channel(channel_id)
        if channel is not None:
            left = [each for each in channel.chosen if event is not None and each != event]
            self.channels.choose(channel.owner, channel_id, left, now=self.clock())

    def confirm(self, code: str, *, act: bool) -> ChannelOut:
        """Return the channel of a link, confirmed if ``act``. Raises NotFound."""
        channel_id, now = self.links.read_confirm(code), self.clock()

        def confirmed(channel: Channel) -> Channel:
            return replace(channel, confirmed_at=channel.confirmed_at or now, problem="")

        if act:
            self.channels.change(channel_id, confirmed)
        channel = self.channels.channel(channel_id)
        if channel is None:
            raise NotFound("This channel was removed.", accepted="Add the address again.")
        return self._shown((channel,))[0]

    def census(self) -> OutboxCensus:
        """Return the numbers of the metrics."""
        return self.outbox.census()

    # -- helpers --------------------------------------------------------------------------

    def _address(self, channel: Channel) -> str | None:
        """Return the address of a channel; None if its key is lost."""
        try:
            return self.seal.open(channel)
        except Unavailable:
            return None

    def _test(self, channel: Channel) -> DeliveryTestOut:
        self._check_limit(channel.owner)
        if not self._tests.acquire(blocking=False):
            raise TooManyCalls(
                f"{_MOST_TESTS} test messages are being sent.", accepted="Try again in a moment."
            )
        try:
            # Tests and confirmations count before they are sent: nothing else limits failing ones.
            self.outbox.record_message(channel.owner, self.clock())
            result = self._send_test(channel)
        finally:
            self._tests.release()
        now = self.clock()

        def tested(found: Channel) -> Channel:
            # A test neither postpones waiting entries nor counts for the digest.
            changed = after(attempted(found, now), result, now)
            sent = found.last_sent_at
            return replace(changed, last_sent_at=sent, next_at=0.0 if result.delivered else now)

        self.channels.change(channel.id, tested)
        unconfirmed = result.delivered and channel.confirmed_at is None
        return DeliveryTestOut(
            channel=channel.id,
            address=channel.shown,
            delivered=result.delivered,
            sentence="A link for confirmation was sent: open it first."
            if unconfirmed
            else result.sentence,
        )

    def _send_test(self, channel: Channel) -> SendResult:
        if channel.confirmed_at is None:
            link = self.links.confirm(channel.id)
            return self.sender.send(channel, messages.confirmation_message(channel.owner, link))
        return self.sender.send(channel, messages.test_message(self.links.settings))

    def _check_limit(self, owner: str) -> None:
        if not self.table.available:
            raise Unavailable(
                "This site sends no notifications.",
                accepted="An administrator sets this up in carrel.toml, below [notifications].",
            )
        if self.outbox.messages_of_day(owner, self.clock()) >= self.table.per_day:
            limit = count(self.table.per_day, "message")
            raise OverMaximum(
                f"The limit of {limit} in 24 hours is reached.", accepted="Try again tomorrow."
            )

    def _one(self, owner: str, channel_id: str) -> ChannelOut:
        found = [each for each in self.channels.channels(owner) if each.id == channel_id]
        if not found:
            raise NotFound("This channel was removed meanwhile.", accepted="Add it again.")
        return self._shown(found)[0]

    def _shown(self, found: Iterable[Channel]) -> list[ChannelOut]:
        channels = list(found)
        waiting = self.outbox.counts([channel.id for channel in channels])
        return [
            ChannelOut(
                id=channel.id,
                kind=channel.kind,
                address=channel.shown,
                events=[event for event in NotificationEvent if event in channel.chosen],
                confirmed=channel.confirmed_at is not None,
                problem=channel.problem,
                stopped=channel.stopped,
                waiting=waiting.get(channel.id, 0),
                last_sent_at=channel.last_sent_at,
            )
            for channel in channels
        ]
