"""Sign in from a terminal: a password or a pasted token becomes stored credentials."""

from __future__ import annotations

import html
import re
import socket
import time
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ValidationError

from ..errors import CarrelError, Forbidden, Unavailable
from .sync_client import Client
from .transport.credentials import Credentials
from .transport.error_map import AWAY, no_carrel
from .transport.site_url import SiteUrl

SCOPES = ("access:services!service=carrel", "custom:carrel:read", "custom:carrel:submit")
"""The scopes of a token of the command line."""
LIFETIME_SECONDS = 90 * 24 * 3600

_LOGIN_ERROR = re.compile(r'class="login_error"[^>]*>(.*?)</', re.DOTALL)


class _Named(BaseModel):
    name: str


class _Token(BaseModel):
    token: str


class _HubError(BaseModel):
    message: str


def login(url: str, username: str, password: str) -> Credentials:
    """Sign in at the JupyterHub of ``url`` and create a token for the command line.

    Raises:
        Forbidden: the sign-in page refused, or the site has no passwords.
        Unavailable: no JupyterHub responds there.
    """
    site = SiteUrl.at(url)
    try:
        with httpx.Client(timeout=30, trust_env=site.trusts_environment) as http:
            _sign_in(http, site, username, password)
            credentials = _make_token(http, site)
    except httpx.TransportError as error:
        raise no_carrel(site.base, str(error) or type(error).__name__) from error
    with Client(site.base, credentials.token) as client:
        client.me()
    return credentials


def sign_in_with_token(url: str, token: str) -> Credentials:
    """Store a token from the token page of JupyterHub (single sign-on)."""
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
    answer = http.post(
        f"{site.hub}/login",
        params={"next": httpx.URL(site.hub).path + "/home"},
        data={"username": username, "password": password, "_xsrf": xsrf},
    )
    if not answer.is_redirect:
        said = _LOGIN_ERROR.search(answer.text)
        sentence = " ".join(html.unescape(re.sub(r"<[^>]+>", "", said[1])).split()) if said else ""
        raise Forbidden(sentence or f"The sign-in page answered with status {answer.status_code}.")


def _make_token(http: httpx.Client, site: SiteUrl) -> Credentials:
    # The _xsrf cookie belongs to the sign-in: the first page after it sets a new one.
    http.get(f"{site.hub}/home")
    headers = {"X-XSRFToken": http.cookies.get("_xsrf") or ""}
    name = _Named.model_validate_json(_good(http.get(f"{site.hub}/api/user", headers=headers))).name
    made = http.post(
        f"{site.hub}/api/users/{quote(name, safe='@')}/tokens",
        headers=headers,
        json={
            "note": f"carrel command line on {socket.gethostname()}",
            "expires_in": LIFETIME_SECONDS,
            "scopes": list(SCOPES),
        },
    )
    return Credentials(
        url=site.base,
        user=name,
        token=_Token.model_validate_json(_good(made)).token,
        expires_at=time.time() + LIFETIME_SECONDS,
    )


def _good(answer: httpx.Response) -> bytes:
    if answer.is_success:
        return answer.content
    try:
        sentence = _HubError.model_validate_json(answer.content).message
    except ValidationError:
        sentence = f"status {answer.status_code}"
    raise CarrelError(f"JupyterHub did not create a token: {sentence}.")


def _single_sign_on(site: SiteUrl) -> Forbidden:
    return Forbidden(
        f"{site.base} signs people in through another service, not with a password.",
        accepted=f"Create a token on {site.hub}/token and paste it into: "
        f"carrel login {site.base} --token",
    )
