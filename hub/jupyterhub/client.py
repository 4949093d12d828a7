"""JupyterHub's REST API behind the ``Hub`` port."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from math import inf
from typing import Any
from urllib.parse import quote

import httpx

from ..errors import NotFound, Refused, Unavailable
from ..interfaces.clock import Instant, MonotonicClock, monotonic
from ..interfaces.jupyterhub import HubServer, HubUser
from ..records.json_value import Json
from .availability import PAGE_SECONDS, HubAvailability

_TIMEOUT_SECONDS = 10.0
_CHECK_SECONDS = 2.0
_PAGE = 200
_AT_ONCE = 25
_TRY_AGAIN = frozenset({408, 425, 429})
"""Statuses that say "later": JupyterHub's limit of servers that start together answers 429."""
_NOTHING_READ: tuple[Instant, tuple[HubUser, ...]] = (Instant(-inf), ())


class HubApi:
    """Blocking calls with a time-out around each; one pooled connection set."""

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
        self._client = httpx.Client(
            base_url=base_url.rstrip("/"),
            headers={"Authorization": f"token {token}"},
            timeout=_TIMEOUT_SECONDS,
            transport=transport,
        )

    @property
    def away(self) -> bool:
        return self._availability.away

    def user(self, name: str, *, for_page: bool = False) -> HubUser:
        missing = NotFound(
            f"JupyterHub knows no user {name}.",
            accepted="An administrator can make an account, or has removed this one.",
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
            # 400: it is running or pending already, which is what was asked for.
            fine=frozenset({400}),
        )

    def stop_server(self, user: str, server: str) -> None:
        self._call("DELETE", _server_path(user, server), fine=frozenset({400, 404}))

    def add_user(self, name: str, *, admin: bool) -> None:
        path = f"/users/{quote(name, safe='')}"
        self._call("POST", path, body={"admin": admin}, fine=frozenset({409}))

    def add_users(self, names: tuple[str, ...]) -> None:
        for some in _parts(names):
            body = {"usernames": list(some), "admin": False}
            self._call("POST", "/users", body=body, fine=frozenset({409}))

    def remove_user(self, name: str) -> None:
        self._call("DELETE", f"/users/{quote(name, safe='')}", fine=frozenset({404}))

    def add_to_group(self, group: str, users: tuple[str, ...]) -> None:
        path = f"/groups/{quote(group, safe='')}"
        self._call("POST", path, fine=frozenset({409}))
        for some in _parts(users):
            self._call("POST", f"{path}/users", body={"users": list(some)})

    def remove_from_group(self, group: str, users: tuple[str, ...]) -> None:
        path = f"/groups/{quote(group, safe='')}/users"
        self._call("DELETE", path, body={"users": list(users)}, fine=frozenset({404}))

    def check(self) -> None:
        """Raises Unavailable unless it answers, soon."""
        try:
            fine = self._client.get("/", timeout=_CHECK_SECONDS).is_success
        except httpx.HTTPError:
            fine = False
        if not fine:
            raise Unavailable("JupyterHub does not answer.")

    def close(self) -> None:
        self._client.close()

    def _call(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, object] | None = None,
        fine: frozenset[int] = frozenset(),
        missing: NotFound | None = None,
        for_page: bool = False,
    ) -> httpx.Response:
        if for_page and self._availability.failed_lately:
            raise Unavailable("JupyterHub does not answer.")
        seconds = PAGE_SECONDS if for_page else _TIMEOUT_SECONDS
        try:
            answer = self._client.request(method, path, json=body, timeout=seconds)
            self._availability.answered()
        except httpx.HTTPError as error:
            self._availability.failed()
            raise Unavailable(
                f"JupyterHub does not answer ({type(error).__name__}).",
                accepted="It is restarted by itself; try again in a few seconds.",
            ) from error
        finally:
            if method != "GET":
                self._changes += 1
                self._users = _NOTHING_READ
        if answer.is_success or answer.status_code in fine:
            return answer
        words = _words(answer)
        if answer.status_code == HTTPStatus.NOT_FOUND:
            raise missing or NotFound(f"JupyterHub knows no such thing: {words}")
        if answer.is_server_error or answer.status_code in _TRY_AGAIN:
            raise Unavailable(f"JupyterHub failed: {words}")
        raise Refused(f"JupyterHub refused: {words}")


def _parts(names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """So few that the hub is done with them long before it counts as away."""
    for begin in range(0, len(names), _AT_ONCE):
        yield names[begin : begin + _AT_ONCE]


def _server_path(user: str, server: str) -> str:
    base = f"/users/{quote(user, safe='')}"
    return f"{base}/servers/{quote(server, safe='')}" if server else f"{base}/server"


def _words(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        return f"status {answer.status_code}"


def _user(item: Any) -> HubUser:  # the hub's JSON, checked by use
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
