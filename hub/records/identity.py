"""The caller of a request, their access rights, and the check for administrators."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import Forbidden


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The authenticated caller, as JupyterHub describes them.

    Attributes:
        groups: JupyterHub groups at sign-in; admission reads them fresh.
    """

    name: str
    admin: bool = False
    groups: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """A user who reads data, with the groups in which they are a teacher.

    ``identity`` is None for the hub itself, which sees everything.
    """

    identity: Identity | None
    teaches: frozenset[str] = frozenset()

    @property
    def name(self) -> str | None:
        return self.identity.name if self.identity else None

    @property
    def sees_all(self) -> bool:
        return self.identity is None or self.identity.admin

    def speaks_to(self, owner: str) -> bool:
        """Whether the reader is the owner; JupyterHub shows what it reads to the owner."""
        return self.identity is None or owner == self.name

    def may_see(self, owner: str, group: str) -> bool:
        return self.sees_all or owner == self.name or group in self.teaches


def require_admin(who: Identity) -> None:
    """Raise Forbidden unless the caller is an administrator."""
    if not who.admin:
        raise Forbidden(
            "This needs administrator rights.", accepted="Ask an administrator of your site."
        )
