"""Sign-in through JupyterHub's OAuth, and look-up of the user of a token.

``HubOAuth`` is used outside of tornado. Answers are cached for five seconds, so that a sign-out, a
revoked token and a removed account take effect within that time. The last answer for a token is
valid for an hour while JupyterHub is away, so that signed-in users can continue while it restarts.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol, Self
from urllib.parse import urlencode

from jupyterhub.services.auth import HubOAuth, check_scopes
from tornado.web import HTTPError

from ...config.base_url import BASE_URL, SERVICE_PREFIX
from ...config.settings import Settings
from ...errors import NotSignedIn, Unavailable
from ...interfaces.clock import Instant, MonotonicClock, monotonic
from ...jupyterhub.availability import PAGE_SECONDS, HubAvailability
from ...records.identity import Identity

SERVICE_NAME = "carrel"
CLIENT_ID = f"service-{SERVICE_NAME}"
ACCESS_SCOPE = f"access:services!service={SERVICE_NAME}"
READ_SCOPE = "custom:carrel:read"
SUBMIT_SCOPE = "custom:carrel:submit"
METRICS_SCOPE = "custom:carrel:metrics"

_SIGN_IN_SECONDS = 25.0
"""How long a new sign-in waits for JupyterHub, whose database may be locked for a while."""
_UNKNOWN_SECONDS = 10.0
"""How long an unknown token waits for its identity; a known one waits as long as a page does."""
_CACHE_SECONDS = 5.0
"""How long an answer of JupyterHub is cached."""
_CALL_SECONDS = 1.0
"""A call that has waited in vain does not wait for the same token again: it is asked for twice."""
_AWAY_SECONDS = 3600.0
"""How long a known identity is valid while JupyterHub is away."""
_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenHolder:
    """The user of a token, and its scopes.

    Attributes:
        session_id: the browser session at JupyterHub in which the token was issued, if any.
    """

    identity: Identity
    scopes: frozenset[str]
    session_id: str = ""

    def may(self, scope: str) -> bool:
        """Return whether the token has the scope, for all users or for its own user."""
        own = scope if "!" in scope else f"{scope}!user={self.identity.name}"
        return bool(check_scopes({scope, own}, set(self.scopes)))


class SignIn(Protocol):
    """The calls of the web layer to JupyterHub; tests use a fake."""

    async def person(self, token: str, session_id: str = "") -> TokenHolder | None:
        """Return the user of a token; None if JupyterHub does not know it. Raises Unavailable."""

    async def token_for_code(self, code: str, verifier: str) -> str:
        """Return the token for a code (the last step of OAuth). Raises NotSignedIn."""

    def authorize_url(self, state: str, verifier: str) -> str:
        """Return the URL of the sign-in."""


_Answer = tuple[Instant, TokenHolder | None]
_NEVER = Instant(-inf)
_NOTHING: _Answer = (_NEVER, None)


def hub_oauth(settings: Settings, service_token: str) -> HubOAuth:
    """Return JupyterHub's OAuth client for an installation, without reading the environment."""
    return HubOAuth(
        api_url=settings.hub_api_url,
        api_token=service_token,
        base_url=SERVICE_PREFIX,
        hub_host="",
        hub_prefix=f"{BASE_URL}hub/",
        oauth_client_id=CLIENT_ID,
        oauth_redirect_uri=f"{SERVICE_PREFIX}oauth_callback",
        oauth_authorization_url=f"{BASE_URL}hub/api/oauth2/authorize",
        oauth_token_url=f"{settings.hub_api_url}/oauth2/token",
        access_scopes={ACCESS_SCOPE},
        cookie_options={},
    )


class HubSignIn:
    """``SignIn`` through JupyterHub."""

    def __init__(
        self,
        oauth: HubOAuth,
        *,
        clock: MonotonicClock = monotonic,
        availability: HubAvailability | None = None,
    ) -> None:
        self._oauth = oauth
        self._availability = availability or HubAvailability(clock)
        self._clock = clock
        self._known: OrderedDict[tuple[str, str], _Answer] = OrderedDict()
        self._failures: OrderedDict[tuple[str, str], Instant] = OrderedDict()
        self._asking: dict[tuple[str, str], asyncio.Task[TokenHolder | None]] = {}

    @classmethod
    def of(cls, settings: Settings, service_token: str, availability: HubAvailability) -> Self:
        """Create it for an installation."""
        return cls(hub_oauth(settings, service_token), availability=availability)

    async def person(self, token: str, session_id: str = "") -> TokenHolder | None:
        key = (session_id, hashlib.sha256(token.encode("utf-8", "replace")).hexdigest())
        read_at, known = self._known.get(key, _NOTHING)
        now = self._clock()
        if now - read_at <= _CACHE_SECONDS:
            return known
        failed_now = now - self._failures.get(key, _NEVER) < _CALL_SECONDS
        if failed_now or (known is not None and self._availability.failed_lately):
            return self._remembered(key, None)
        if key not in self._asking:
            self._asking[key] = asyncio.create_task(self._ask(key, token))
            self._asking[key].add_done_callback(lambda _: self._asking.pop(key, None))
        # Shielded: calls that arrive together wait for the same answer.
        return await asyncio.shield(self._asking[key])

    async def _ask(self, key: tuple[str, str], token: str) -> TokenHolder | None:
        now = self._clock()
        known = self._known.get(key, _NOTHING)[1]
        try:
            async with asyncio.timeout(PAGE_SECONDS if known else _UNKNOWN_SECONDS):
                model = await self._oauth.user_for_token(
                    token, use_cache=False, session_id=key[0], sync=False
                )
        except (HTTPError, TimeoutError) as error:
            self._availability.failed()
            self._failures[key] = self._clock()
            while len(self._failures) > _REMEMBERED:
                self._failures.popitem(last=False)
            return self._remembered(key, error)
        person = _person(model) if model is not None and model.get("kind") == "user" else None
        self._known[key] = (now, person)
        self._known.move_to_end(key)
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return person

    def _remembered(self, key: tuple[str, str], error: Exception | None) -> TokenHolder:
        read_at, person = self._known.get(key, _NOTHING)
        if person is None or self._clock() - read_at > _AWAY_SECONDS:
            raise Unavailable(
                "JupyterHub is not responding, so you cannot sign in now.",
                accepted="It restarts automatically; try again in a few seconds.",
            ) from error
        return person

    async def token_for_code(self, code: str, verifier: str) -> str:
        try:
            async with asyncio.timeout(_SIGN_IN_SECONDS):
                token = await self._oauth.token_for_code(code, code_verifier=verifier, sync=False)
        except (HTTPError, TimeoutError, KeyError) as error:
            raise NotSignedIn(
                "JupyterHub did not confirm this sign-in.",
                accepted="Sign in again; if that fails too, JupyterHub may be restarting.",
            ) from error
        return str(token)

    def authorize_url(self, state: str, verifier: str) -> str:
        challenge = hashlib.sha256(verifier.encode()).digest()
        query = {
            "client_id": self._oauth.oauth_client_id,
            "redirect_uri": self._oauth.oauth_redirect_uri,
            "response_type": "code",
            "state": state,
            "code_challenge": base64.urlsafe_b64encode(challenge).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        return f"{self._oauth.oauth_authorization_url}?{urlencode(query)}"


def _person(model: dict[str, Any]) -> TokenHolder:  # the JSON of JupyterHub, checked by use
    return TokenHolder(
        identity=Identity(
            name=str(model["name"]),
            admin=bool(model.get("admin")),
            groups=frozenset(str(group) for group in model.get("groups") or ()),
        ),
        scopes=frozenset(str(scope) for scope in model.get("scopes") or ()),
        session_id=str(model.get("session_id") or ""),
    )
