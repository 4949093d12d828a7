"""The port to JupyterHub's REST API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ..records.json_value import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class HubServer:
    """A single-user server as JupyterHub reports it."""

    user: str
    name: str
    ready: bool
    pending: str | None
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HubUser:
    name: str
    admin: bool
    groups: frozenset[str]
    servers: Mapping[str, HubServer]


class JupyterHub(Protocol):
    """The calls of JupyterHub's REST API that Carrel needs. Every call may raise Unavailable."""

    @property
    def away(self) -> bool:
        """Whether the last call got no answer."""

    def uses_accounts(self) -> bool:
        """Return whether users sign in with Carrel's own accounts, and not with OAuth or LDAP.

        True while JupyterHub has not answered yet; this call raises nothing.
        """

    def user(self, name: str, *, for_page: bool = False) -> HubUser:
        """Return a user, never from a cache.

        Args:
            for_page: use a short timeout, because a page waits for the answer.

        Raises:
            NotFound: JupyterHub does not know the user.
        """

    def users(self, *, within: float = 0.0) -> tuple[HubUser, ...]:
        """Return all users, from a cache of at most ``within`` seconds of age.

        With ``within`` above 0, which is for display only, an older cache is returned while
        JupyterHub does not answer.
        """

    def start_server(self, user: str, server: str, options: Mapping[str, Json]) -> None:
        """Ask JupyterHub to start a server; do nothing if it is pending or running already.

        Raises:
            Refused: JupyterHub refused; the message is its own.
        """

    def stop_server(self, user: str, server: str) -> None:
        """Ask JupyterHub to stop a server; do nothing if it does not run."""

    def add_user(self, name: str, *, admin: bool) -> None:
        """Add a user. Idempotent."""

    def add_users(self, names: tuple[str, ...]) -> None:
        """Add several users, none of them an administrator, in one call. Idempotent."""

    def remove_user(self, name: str) -> None:
        """Remove a user. Idempotent."""

    def add_to_group(self, group: str, users: tuple[str, ...]) -> None:
        """Add users to a group and create the group if it is missing. Idempotent."""

    def remove_from_group(self, group: str, users: tuple[str, ...]) -> None:
        """Remove users from a group. Idempotent."""
