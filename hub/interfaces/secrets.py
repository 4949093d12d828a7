"""The ports to stored secrets and to the cipher of their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ..records.audit import AuditEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretKey:
    """Identifies a secret: of a user, or of a group.

    Attributes:
        owner: the user; empty for a secret of a group.
        group: the group; empty for a secret of a user.
    """

    name: str
    owner: str = ""
    group: str = ""

    @property
    def label(self) -> str:
        """``ada/TOKEN`` or ``cs101/TOKEN``, as the audit log shows it."""
        return f"{self.group or self.owner}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSecret:
    """A secret as it is stored.

    Attributes:
        token: the encrypted value.
        used_in: id of the request of the last use.
    """

    key: SecretKey
    token: str = field(repr=False)
    set_by: str
    set_at: float
    used_at: float | None = None
    used_by: str = ""
    used_in: str = ""


class SecretStore(Protocol):
    """The part of the store for secrets; see ``hub.interfaces.store``."""

    def put_secret(self, secret: StoredSecret, *, most: int, change: AuditEntry) -> None:
        """Create or replace a secret.

        Raises:
            OverMaximum: the user or group has ``most`` other secrets.
        """

    def secret(self, key: SecretKey) -> StoredSecret | None:
        """Return a secret; None if there is none."""

    def secrets(self, *, owner: str, groups: Sequence[str]) -> tuple[StoredSecret, ...]:
        """Return the secrets of a user and of groups, by group and name."""

    def use_secret(self, key: SecretKey, *, change: AuditEntry) -> None:
        """Store the use of a secret: by whom, and as the entry's target says in what."""

    def remove_secret(self, key: SecretKey, *, change: AuditEntry) -> bool:
        """Delete a secret; return whether there was one."""

    def remove_secrets_of(self, owner: str) -> int:
        """Delete all secrets of a user; return how many there were."""

    def renew_secrets(self, renew: Callable[[str], str]) -> int:
        """Replace every token, also of notification addresses; return how many there are."""

    def session_secrets(self, request_id: str) -> tuple[str, ...]:
        """Return which secrets a session uses."""

    def put_secret_ticket(self, lease_id: str, token_hash: str) -> None:
        """Store the ticket of a lease, in place of an earlier one."""

    def take_secret_ticket(self, token_hash: str) -> str | None:
        """Delete a ticket and return its lease; None if there is none."""


class ValueCipher(Protocol):
    """Encrypts values for the store."""

    def encrypt(self, value: bytes, *, purpose: str) -> str:
        """Return the token of a value, which only the same purpose decrypts."""

    def decrypt(self, token: str, *, purpose: str) -> bytes:
        """Return the value of a token. Raises Unavailable without its key."""
