"""Sign in through JupyterHub's OAuth, and sign out.

The service may restart between the two steps of a sign-in: it keeps nothing in memory, and the
browser stores a signed state, from which the PKCE verifier is derived again.
"""

from __future__ import annotations

import re
import secrets

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from ...config.base_url import BASE_URL, SERVICE_PREFIX
from ...errors import Forbidden, NotSignedIn
from ..dependencies.context import WebContext, web_of
from ..dependencies.redirects import SEE_OTHER, own_page
from ..security.access import SESSION_COOKIE, SESSION_PURPOSE
from ..security.signer import same

HUB_LOGOUT = f"{BASE_URL}hub/logout"
_STATE_COOKIE = "carrel-state-"
_STATE_PURPOSE = "oauth-state"
_STATE_SECONDS = 600
_MOST_STATES = 8
"""Sign-ins that one browser may have open; servers reject cookies of several KiB (431)."""
_STATE = re.compile(r"[A-Za-z0-9_-]{20,60}")

router = APIRouter(include_in_schema=False)


@router.get("/login")
async def login(request: Request, next: str = SERVICE_PREFIX) -> Response:
    """Store the requested page, and redirect to JupyterHub (first step)."""
    web = web_of(request)
    state = secrets.token_urlsafe(24)
    hub = web.caller_access.sign_in.authorize_url(state, _verifier(web, state))
    answer = RedirectResponse(hub, SEE_OTHER)
    answer.set_cookie(
        _STATE_COOKIE + state[:8],
        web.signer.wrap(_STATE_PURPOSE, f"{state}|{own_page(next)}"),
        max_age=_STATE_SECONDS,
        path=SERVICE_PREFIX,
        httponly=True,
        samesite="lax",
        secure=is_https(request),
    )
    # Browsers send older cookies first.
    open_states = [name for name in request.cookies if name.startswith(_STATE_COOKIE)]
    for name in open_states[: 1 - _MOST_STATES]:
        answer.delete_cookie(name, path=SERVICE_PREFIX)
    return answer


@router.get("/oauth_callback")
async def oauth_callback(
    request: Request, code: str = "", state: str = "", error: str = ""
) -> Response:
    """Exchange the code with which JupyterHub redirected the browser back (second step)."""
    web = web_of(request)
    wanted = _wanted(web, request, state)
    if error:
        raise Forbidden(
            "JupyterHub denied the sign-in.",
            accepted="Ask your administrator for access to Carrel.",
        )
    if not code:
        raise NotSignedIn("JupyterHub sent no sign-in code.", accepted="Sign in again.")
    token = await web.caller_access.sign_in.token_for_code(code, _verifier(web, state))
    answer = RedirectResponse(own_page(wanted), SEE_OTHER)
    answer.set_cookie(
        SESSION_COOKIE,
        web.signer.wrap(SESSION_PURPOSE, token),
        path=SERVICE_PREFIX,
        httponly=True,
        samesite="lax",
        secure=is_https(request),
    )
    answer.delete_cookie(_STATE_COOKIE + state[:8], path=SERVICE_PREFIX)
    return answer


def signed_out() -> RedirectResponse:
    """Sign out of Carrel, and redirect to the sign-out of JupyterHub."""
    answer = RedirectResponse(HUB_LOGOUT, SEE_OTHER)
    answer.delete_cookie(SESSION_COOKIE, path=SERVICE_PREFIX)
    return answer


def is_https(request: Request) -> bool:
    """Return whether the connection of the browser is encrypted, according to the proxies."""
    web = web_of(request)
    forwarded = request.headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower()
    return "https" in (forwarded, request.url.scheme, web.settings.url.partition(":")[0])


def _verifier(web: WebContext, state: str) -> str:
    return web.signer.mac("pkce", state)


def _wanted(web: WebContext, request: Request, state: str) -> str:
    """Return the page that this browser requested. Raises NotSignedIn for a foreign state."""
    cookie = ""
    if _STATE.fullmatch(state):
        cookie = request.cookies.get(_STATE_COOKIE + state[:8], "")
    known, _, wanted = (web.signer.unwrap(_STATE_PURPOSE, cookie) or "").partition("|")
    if not known or not same(known, state):
        raise NotSignedIn(
            "This sign-in was started in another browser, or took too long.",
            accepted="Sign in again.",
        )
    return wanted
