"""Notifications of a user: channels and their events; and the links in messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import RedirectResponse, Response

from ...config.base_url import SERVICE_PREFIX
from ...errors import CarrelError
from ...schemas.notifications.bodies import (
    LONGEST_ADDRESS,
    ChannelIn,
    DeliveryTestIn,
    DeliveryTestOut,
)
from ...schemas.notifications.events import HINTS, TITLES, NotificationEvent
from ..dependencies.callers import Carrel
from ..dependencies.context import WebContext
from ..dependencies.redirects import SEE_OTHER
from ..dependencies.visitors import Guest, Pairs, html
from ..forms.fields import no_action
from ..security.access import Visitor

NOTIFICATIONS = f"{SERVICE_PREFIX}notifications"

Code = Annotated[str, Path(max_length=200)]
router = APIRouter(include_in_schema=False, prefix="/notifications")


@router.get("")
def notifications(web: Carrel, visitor: Guest) -> Response:
    return _page(web, visitor)


@router.post("")
def change(web: Carrel, visitor: Guest, pairs: Pairs) -> Response:
    """Add, test or remove a channel, or choose events, depending on the button."""
    who, service, filled = visitor.identity, web.user_notifications, dict(pairs)
    action, _, channel = filled.get("do", "").partition(":")
    try:
        match action:
            case "add":
                events = [NotificationEvent.SESSION_READY, NotificationEvent.JOB_ATTENTION]
                service.add(who, ChannelIn(address=_address(filled), events=events))
            case "choose":
                for each in service.all(who).channels:
                    service.choose(who, each.id, _chosen(pairs, each.id))
            case "test":
                sent = service.test(who, DeliveryTestIn(channel=channel[:64])).results
                return _page(web, visitor, sent=sent)
            case "remove":
                service.remove(who, channel)
            case _:
                raise no_action()
    except CarrelError as error:
        return _page(web, visitor, error=error, filled=filled)
    return RedirectResponse(NOTIFICATIONS, SEE_OTHER)


def _address(filled: Mapping[str, str]) -> str:
    # One that is longer is refused with a sentence, after the other checks of the body.
    return filled.get("address", "").strip()[:LONGEST_ADDRESS]


def _chosen(pairs: Sequence[tuple[str, str]], channel: str) -> list[NotificationEvent]:
    wanted = {value for name, value in pairs if name == "on"}
    return [event for event in NotificationEvent if f"{channel}~{event}" in wanted]


def _page(
    web: WebContext,
    visitor: Visitor,
    *,
    error: CarrelError | None = None,
    filled: Mapping[str, str] | None = None,
    sent: Sequence[DeliveryTestOut] = (),
) -> Response:
    page = web.render_for(
        visitor,
        "account/notifications.html",
        found=web.user_notifications.all(visitor.identity),
        events=[(event, TITLES[event], HINTS[event]) for event in NotificationEvent],
        titles=TITLES,
        sent=sent,
        longest=LONGEST_ADDRESS,
        error=error,
        filled=filled or {},
    )
    return html(page, error.http_status if error else 200)


# -- links in messages: without a sign-in ------------------------------------------------------


@router.get("/stop/{code}")
def ask_to_stop(web: Carrel, code: Code) -> Response:
    """Ask before messages are stopped: programs that check mail open its links."""
    return _stop_page(web, code)


@router.post("/stop/{code}")
def stop(web: Carrel, code: Code) -> Response:
    """Stop messages. The code is the proof, also for a mail program (RFC 8058)."""
    web.user_notifications.stop(code)
    return _stop_page(web, code)


def _stop_page(web: WebContext, code: str) -> Response:
    found = web.user_notifications.stop_link(code)
    what = TITLES[found.event] if found.event else ""
    return html(web.render("account/notification_stop.html", found=found, what=what, code=code))


@router.get("/confirm/{code}")
def ask_to_confirm(web: Carrel, code: Code) -> Response:
    return _confirm_page(web, code, act=False)


@router.post("/confirm/{code}")
def confirm(web: Carrel, code: Code) -> Response:
    """Confirm an e-mail address. The code, which was sent to it, is the proof."""
    return _confirm_page(web, code, act=True)


def _confirm_page(web: WebContext, code: str, *, act: bool) -> Response:
    channel = web.user_notifications.confirm(code, act=act)
    page = web.render("account/notification_confirm.html", channel=channel, code=code)
    return html(page)
