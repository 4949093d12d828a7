"""A client of JupyterHub's REST API; implements the ``Hub`` port."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from math import inf
from typing import Any
from urllib.parse import quote

import httpx

from ..errors import CarrelError, NotFound, Refused, Unavailable
from ..interfaces.clock import Instant, MonotonicClock, monotonic
from ..interfaces.jupyterhub import HubServer, HubUser
from ..records.json_value import Json
from .availability import PAGE_SECONDS, HubAvailability

_TIMEOUT_SECONDS = 10.0
_CHECK_SECONDS = 2.0
_PAGE = 200
_BATCH = 25
"""Users per call; JupyterHub handles this number well within the timeout."""
_RETRYABLE = frozenset({408, 425, 429})
"""Temporary failures; JupyterHub answers 429 when too many servers start at the same time."""
_OWN_AUTHENTICATOR = "carrel.hub.accounts.authenticator.CarrelAuthenticator"
_NOTHING_READ: tuple[Instant, tuple[HubUser, ...]] = (Instant(-inf), ())


class HubApi:
    """Makes blocking calls, each with a timeout, over one connection pool."""

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        transport: httpx.BaseTransport | None = None,
        clock: MonotonicClock = monotonic,
        availability: HubAvailability | None = None,
    ) -> None:
        self._clock = clock
        self._availability = availability or HubAvailability(clock)
        self._users = _NOTHING_READ
        self._changes = 0
        self._own_accounts: bool | None = None
        self._client = httpx.Client(
            base_url=base_url.rstrip("/"),
            headers={"Authorization": f"token {token}"},
            timeout=_TIMEOUT_SECONDS,
            transport=transport,
        )

    @property
    def away(self) -> bool:
        return self._availability.away

    def uses_accounts(self) -> bool:
        if self._own_accounts is None:
            try:
                info = self._call("GET", "/info", for_page=True).json()
            except CarrelError:
                return True
            # It changes only with the configuration, for which both processes restart.
            self._own_accounts = info["authenticator"]["class"] == _OWN_AUTHENTICATOR
        return self._own_accounts

    def user(self, name: str, *, for_page: bool = False) -> HubUser:
        missing = NotFound(
            f"JupyterHub has no user {name}.",
            accepted="An administrator can create the account, or has removed it.",
        )
        path = f"/users/{quote(name, safe='')}"
        return _user(self._call("GET", path, missing=missing, for_page=for_page).json())

    def users(self, *, within: float = 0.0) -> tuple[HubUser, ...]:
        read_at, found = self._users
        if self._clock() - read_at >= within:
            changes, now = self._changes, self._clock()
            try:
                found = self._read_users(for_page=within > 0)
            except Unavailable:
                if within > 0 and self._users is not _NOTHING_READ:
                    return found
                raise
            if changes == self._changes:
                self._users = now, found
        return found

    def _read_users(self, *, for_page: bool) -> tuple[HubUser, ...]:
        found: list[HubUser] = []
        while True:
            page = self._call(
                "GET",
                f"/users?offset={len(found)}&limit={_PAGE}&include_stopped_servers=false",
                for_page=for_page,
            ).json()
            found.extend(_user(item) for item in page)
            if len(page) < _PAGE:
                return tuple(found)

    def start_server(self, user: str, server: str, options: Mapping[str, Json]) -> None:
        self._call(
            "POST",
            _server_path(user, server),
            body={"user_options": dict(options)},
            # 400: the server is running or pending already.
            accept=frozenset({400}),
        )

    def stop_server(self, user: str, server: str) -> None:
        self._call("DELETE", _server_path(user, server), accept=frozenset({400, 404}))

    def add_user(self, name: str, *, admin: bool) -> None:
        path = f"/users/{quote(name, safe='')}"
        self._call("POST", path, body={"admin": admin}, accept=frozenset({409}))

    def add_users(self, names: tuple[str, ...]) -> None:
        for batch in _batches(names):
            body = {"usernames": list(batch), "admin": False}
            self._call("POST", "/users", body=body, accept=frozenset({409}))

    def remove_user(self, name: str) -> None:
        self._call("DELETE", f"/users/{quote(name, safe='')}", accept=frozenset({404}))

    def add_to_group(self, group: str, users: tuple[str, ...]) -> None:
        path = f"/groups/{quote(group, safe='')}"
        self._call("POST", path, accept=frozenset({409}))
        for batch in _batches(users):
            self._call("POST", f"{path}/users", body={"users": list(batch)})

    def remove_from_group(self, group: str, users: tuple[str, ...]) -> None:
        path = f"/groups/{quote(group, safe='')}/users"
        self._call("DELETE", path, body={"users": list(users)}, accept=frozenset({404}))

    def check(self) -> None:
        """Check that JupyterHub answers.

        Raises:
            Unavailable: JupyterHub did not answer within ``_CHECK_SECONDS``.
        """
        try:
            healthy = self._client.get("/", timeout=_CHECK_SECONDS).is_success
        except httpx.HTTPError:
            healthy = False
        if not healthy:
            raise Unavailable("JupyterHub does not answer.")

    def close(self) -> None:
        self._client.close()

    def _call(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, object] | None = None,
        accept: frozenset[int] = frozenset(),
        missing: NotFound | None = None,
        for_page: bool = False,
    ) -> httpx.Response:
        if for_page and self._availability.failed_lately:
            raise Unavailable("JupyterHub does not answer.")
        seconds = PAGE_SECONDS if for_page else _TIMEOUT_SECONDS
        try:
            response = self._client.request(method, path, json=body, timeout=seconds)
            self._availability.answered()
        except httpx.HTTPError as error:
            self._availability.failed()
            raise Unavailable(
                f"JupyterHub does not answer ({type(error).__name__}).",
                accepted="It restarts automatically; try again in a few seconds.",
            ) from error
        finally:
            if method != "GET":
                self._changes += 1
                self._users = _NOTHING_READ
        if response.is_success or response.status_code in accept:
            return response
        message = _message(response)
        if response.status_code == HTTPStatus.NOT_FOUND:
            raise missing or NotFound(f"JupyterHub found nothing at {path}: {message}")
        if response.is_server_error or response.status_code in _RETRYABLE:
            raise Unavailable(f"JupyterHub failed: {message}")
        raise Refused(f"JupyterHub refused: {message}")


def _batches(names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for begin in range(0, len(names), _BATCH):
        yield names[begin : begin + _BATCH]


def _server_path(user: str, server: str) -> str:
    base = f"/users/{quote(user, safe='')}"
    return f"{base}/servers/{quote(server, safe='')}" if server else f"{base}/server"


def _message(response: httpx.Response) -> str:
    try:
        return str(response.json()["message"])
    except (ValueError, KeyError, TypeError):
        return f"status {response.status_code}"


def _user(item: Any) -> HubUser:  # JSON of JupyterHub, checked by use
    name = str(item["name"])
    return HubUser(
        name=name,
        admin=bool(item.get("admin")),
        groups=frozenset(str(group) for group in item.get("groups") or ()),
        servers={
            str(key): HubServer(
                user=name,
                name=str(key),
                ready=bool(server.get("ready")),
                pending=server.get("pending"),
                url=str(server.get("url") or ""),
            )
            for key, server in (item.get("servers") or {}).items()
        },
    )
