"""Bodies of the routes for notifications."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ..base import In, Out
from .events import NotificationEvent

LONGEST_ADDRESS = 500
"""Characters of an address of a channel."""


class ChannelIn(In):
    """Body of ``POST /api/v1/notifications/channels``.

    ``address`` is an e-mail address, or the Apprise URL of a service that the site allows, such as
    ``jsons://hooks.example.edu/carrel``. Empty: your e-mail address, where the site knows it.
    """

    address: Annotated[str, Field(max_length=LONGEST_ADDRESS)] = ""
    events: list[NotificationEvent] = []


class ChannelEventsIn(In):
    """Body of ``PUT /api/v1/notifications/channels/{channel}``: the events that it tells of."""

    events: list[NotificationEvent]


class ChannelOut(Out):
    """A channel. ``address`` is shortened: it is never shown in full again.

    ``confirmed`` is whether messages may be sent: an e-mail address that you chose must be
    confirmed first. ``problem`` says why the last message was not delivered; empty if it was.
    ``waiting`` is the number of notifications that are not sent yet.
    """

    id: str
    kind: str
    address: str
    events: list[NotificationEvent]
    confirmed: bool
    problem: str
    stopped: bool
    waiting: int
    last_sent_at: float | None


class ChannelsOut(Out):
    """The channels of the caller, and what the site offers.

    ``sentence`` says what an address may be; ``own_address`` is the e-mail address that the site
    knows, empty if it knows none. ``dropped`` are the newest notifications that were given up.
    """

    channels: list[ChannelOut]
    available: bool
    sentence: str
    own_address: str
    dropped: list[DroppedOut]


class DroppedOut(Out):
    """A notification that was given up, with the reason."""

    event: NotificationEvent
    text: str
    at: float
    why: str


class DeliveryTestIn(In):
    """Body of ``POST /api/v1/notifications/test``.

    Without ``channel`` all channels are tested. ``user`` is for administrators.
    """

    channel: Annotated[str, Field(max_length=64)] = ""
    user: Annotated[str, Field(max_length=200)] = ""


class DeliveryTestOut(Out):
    """The result of a test message to one channel; ``sentence`` says why it failed."""

    channel: str
    address: str
    delivered: bool
    sentence: str


class DeliveryTestsOut(Out):
    results: list[DeliveryTestOut]
