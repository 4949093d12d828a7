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
    """JupyterHub's REST API, as far as Carrel needs it. Every call may raise Unavailable."""

    @property
    def away(self) -> bool:
        """Whether the last call had no answer."""

    def user(self, name: str, *, for_page: bool = False) -> HubUser:
        """Return a user, never from a cache. Raises NotFound.

        ``for_page``: a person waits, so that Unavailable is raised early.
        """

    def users(self, *, within: float = 0.0) -> tuple[HubUser, ...]:
        """Read fresh; or, for display only, as they were at most so many seconds ago.

        For display, users that were read earlier are returned while JupyterHub does not answer.
        """

    def start_server(self, user: str, server: str, options: Mapping[str, Json]) -> None:
        """Ask the hub to start a server; one that is pending or running already is fine.

        Raises:
            Refused: the hub's own words.
        """

    def stop_server(self, user: str, server: str) -> None:
        """Ask JupyterHub to stop a server; no error if it does not run."""

    def add_user(self, name: str, *, admin: bool) -> None:
        """Idempotent."""

    def add_users(self, names: tuple[str, ...]) -> None:
        """Several at once, none of them an administrator. Idempotent."""

    def remove_user(self, name: str) -> None:
        """Idempotent."""

    def add_to_group(self, group: str, users: tuple[str, ...]) -> None:
        """Idempotent; creates the group."""

    def remove_from_group(self, group: str, users: tuple[str, ...]) -> None:
        """Idempotent."""
