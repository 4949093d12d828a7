"""REST routes for notifications of the caller."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from ...schemas.notifications.bodies import (
    ChannelEventsIn,
    ChannelIn,
    ChannelOut,
    ChannelsOut,
    DeliveryTestIn,
    DeliveryTestsOut,
)
from ..dependencies.bodies import json_body
from ..dependencies.callers import Carrel, Reader, Writer
from ..openapi.description import ERRORS, body_of

ChannelId = Annotated[str, Path(max_length=64, description="Id of a channel.")]

router = APIRouter(prefix="/notifications", responses=ERRORS, tags=["notifications"])


@router.get("", summary="Your channels, their events, and what was not delivered")
def channels(web: Carrel, who: Reader) -> ChannelsOut:
    """Addresses are shortened: they are never shown in full again."""
    return web.user_notifications.all(who)


@router.post(
    "/channels",
    status_code=201,
    summary="Add a channel",
    openapi_extra=body_of(ChannelIn),
)
def add_channel(
    web: Carrel, who: Writer, body: Annotated[ChannelIn, Depends(json_body(ChannelIn))]
) -> ChannelOut:
    """An e-mail address that the site does not know is confirmed by a link that is sent to it.

    For an address that is a channel already, the events are added to it.
    """
    return web.user_notifications.add(who, body)


@router.put(
    "/channels/{channel}",
    summary="Choose the events of a channel",
    openapi_extra=body_of(ChannelEventsIn),
)
def choose_events(
    web: Carrel,
    who: Writer,
    channel: ChannelId,
    body: Annotated[ChannelEventsIn, Depends(json_body(ChannelEventsIn))],
) -> ChannelOut:
    """An empty list stops all messages; waiting notifications of a removed event are not sent."""
    return web.user_notifications.choose(who, channel, body.events)


@router.delete("/channels/{channel}", status_code=204, summary="Remove a channel")
def remove_channel(web: Carrel, who: Writer, channel: ChannelId) -> None:
    """Nothing more is sent to it."""
    web.user_notifications.remove(who, channel)


@router.post(
    "/test",
    summary="Send a test message, and get its result",
    openapi_extra=body_of(DeliveryTestIn),
)
def send_test(
    web: Carrel, who: Writer, body: Annotated[DeliveryTestIn, Depends(json_body(DeliveryTestIn))]
) -> DeliveryTestsOut:
    """It is sent at once. Administrators may test the channels of another `user`."""
    return web.user_notifications.test(who, body)
