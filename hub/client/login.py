"""Sign in from a terminal, with a password or a pasted token."""

from __future__ import annotations

import html
import re
import socket
from datetime import datetime
from http import HTTPStatus
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ValidationError

from ..errors import CarrelError, Forbidden, Unavailable
from .sync_client import Client
from .transport.credentials import Credentials
from .transport.error_map import AWAY, site_unreachable
from .transport.site_url import SiteUrl

SCOPES = ("access:services!service=carrel", "custom:carrel:read", "custom:carrel:submit")
"""The scopes of the command line's token."""
LIFETIME_SECONDS = 90 * 24 * 3600
"""Of the token; a site may allow less."""

_LOGIN_ERROR = re.compile(r'class="login_error"[^>]*>(.*?)</', re.DOTALL)


class _User(BaseModel):
    name: str


class _Token(BaseModel):
    token: str
    expires_at: datetime | None = None


class _HubError(BaseModel):
    message: str


def login(url: str, username: str, password: str) -> Credentials:
    """Sign in at the JupyterHub of ``url`` and create a token for the command line.

    Raises:
        Forbidden: the name or password is wrong, or the site has no passwords.
        Unavailable: no JupyterHub responds at the address.
    """
    site = SiteUrl.at(url)
    try:
        with httpx.Client(timeout=30, trust_env=site.trusts_environment) as http:
            _sign_in(http, site, username, password)
            credentials = _make_token(http, site)
    except httpx.TransportError as error:
        raise site_unreachable(site.base, str(error) or type(error).__name__) from error
    with Client(site.base, credentials.token) as client:
        client.me()
    return credentials


def sign_in_with_token(url: str, token: str) -> Credentials:
    """Return the credentials of a token from the token page of JupyterHub (single sign-on)."""
    site = SiteUrl.at(url)
    with Client(site.base, token.strip()) as client:
        return Credentials(url=site.base, user=client.me().name, token=token.strip())


def _sign_in(http: httpx.Client, site: SiteUrl, username: str, password: str) -> None:
    page = http.get(f"{site.hub}/login")
    if page.status_code in AWAY:
        raise Unavailable(f"JupyterHub at {site.base} is not responding.")
    xsrf = http.cookies.get("_xsrf")
    if page.is_redirect or (page.is_success and 'name="password"' not in page.text):
        raise _single_sign_on(site)
    if not page.is_success or xsrf is None:
        raise Unavailable(
            f"There is no JupyterHub at {site.base} (status {page.status_code}).",
            accepted="Use the address that you open in the browser.",
        )
    response = http.post(
        f"{site.hub}/login",
        params={"next": httpx.URL(site.hub).path + "/home"},
        data={"username": username, "password": password, "_xsrf": xsrf},
    )
    if not response.is_redirect:
        error = _LOGIN_ERROR.search(response.text)
        message = " ".join(html.unescape(re.sub(r"<[^>]+>", "", error[1])).split()) if error else ""
        raise Forbidden(message or f"The sign-in page answered with status {response.status_code}.")


def _make_token(http: httpx.Client, site: SiteUrl) -> Credentials:
    # JupyterHub replaces the _xsrf cookie on the first page after a sign-in.
    http.get(f"{site.hub}/home")
    headers = {"X-XSRFToken": http.cookies.get("_xsrf") or ""}
    user = _content(http.get(f"{site.hub}/api/user", headers=headers))
    name = _User.model_validate_json(user).name
    path = f"{site.hub}/api/users/{quote(name, safe='@')}/tokens"
    wanted = {
        "note": f"carrel command line on {socket.gethostname()}",
        "scopes": list(SCOPES),
    }
    response = http.post(path, headers=headers, json=wanted | {"expires_in": LIFETIME_SECONDS})
    if response.status_code == HTTPStatus.BAD_REQUEST:
        # The site allows less: without a time, the hub takes the longest that it allows.
        response = http.post(path, headers=headers, json=wanted)
    made = _Token.model_validate_json(_content(response))
    ends = made.expires_at.timestamp() if made.expires_at else None
    return Credentials(url=site.base, user=name, token=made.token, expires_at=ends)


def _content(response: httpx.Response) -> bytes:
    """Return the content of a response; raises CarrelError if it is an error."""
    if response.is_success:
        return response.content
    try:
        message = _HubError.model_validate_json(response.content).message
    except ValidationError:
        message = f"status {response.status_code}"
    raise CarrelError(f"JupyterHub did not create a token: {message}.")


def _single_sign_on(site: SiteUrl) -> Forbidden:
    return Forbidden(
        f"{site.base} signs users in through another service, not with a password.",
        accepted=f"Create a token on {site.hub}/token and paste it into: "
        f"carrel login {site.base} --token",
    )
