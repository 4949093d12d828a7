"""Encrypt short texts for the database, under keys in a private file of the state folder.

A token is that of Fernet (AES-128-CBC with HMAC-SHA256, https://github.com/fernet/spec): it cannot
be read or changed without the key. Each token names its purpose inside, so that a token that was
copied to another row of the database is refused.

The file has one key per line, the newest first. The newest encrypts; all decrypt. It is read at
every use, so that a rotation needs no restart of the service.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import Unavailable
from ..files.private_file import write_private

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet

_SEPARATOR = b"\0"


@dataclass(frozen=True, slots=True)
class Cipher:
    """Encrypts and decrypts under the keys of a file, which is created at the first encryption.

    Attributes:
        key_file: ``StateFolder.encryption_keys``.
    """

    key_file: Path

    def encrypt(self, value: bytes, *, purpose: str) -> str:
        """Return the token of a value.

        Args:
            purpose: what the value is for, without NUL; ``decrypt`` must name the same.
        """
        self._create()
        return self._fernet().encrypt(purpose.encode() + _SEPARATOR + value).decode()

    def decrypt(self, token: str, *, purpose: str) -> bytes:
        """Return the value of a token.

        Raises:
            Unavailable: no key of the file fits, or the token is for another purpose.
        """
        from cryptography.fernet import InvalidToken  # noqa: PLC0415  # slow to import

        try:
            found, _, value = self._fernet().decrypt(token).partition(_SEPARATOR)
        except InvalidToken:
            raise self._no_key() from None
        if found != purpose.encode():
            raise self._no_key()
        return value

    def renew(self, token: str) -> str:
        """Return a token of the same value under the newest key. Raises Unavailable."""
        from cryptography.fernet import InvalidToken  # noqa: PLC0415  # slow to import

        try:
            return self._fernet().rotate(token).decode()
        except InvalidToken:
            raise self._no_key() from None

    def add_key(self) -> None:
        """Make a new key the first of the file; tokens of the others can still be decrypted."""
        from cryptography.fernet import Fernet  # noqa: PLC0415  # slow to import

        self._create()
        self._write([Fernet.generate_key().decode(), *self._keys()])

    def drop_keys(self, *, keep: int) -> None:
        """Keep only the newest keys of the file."""
        self._write(self._keys()[:keep])

    def _fernet(self) -> MultiFernet:
        from cryptography.fernet import Fernet, MultiFernet  # noqa: PLC0415  # slow to import

        try:
            return MultiFernet([Fernet(key) for key in self._keys()])
        except ValueError:
            raise self._no_key() from None

    def _keys(self) -> list[str]:
        try:
            return self.key_file.read_text(encoding="ascii").split()
        except OSError:
            raise self._no_key() from None

    def _create(self) -> None:
        """Create the file with its first key; of two processes that do so, one succeeds."""
        from cryptography.fernet import Fernet  # noqa: PLC0415  # slow to import

        if self.key_file.exists():
            return
        draft = self.key_file.with_name(f"{self.key_file.name}.{secrets.token_hex(4)}")
        write_private(draft, Fernet.generate_key().decode() + "\n")
        with suppress(FileExistsError):
            os.link(draft, self.key_file)
        draft.unlink()

    def _write(self, keys: list[str]) -> None:
        write_private(self.key_file, "\n".join(keys) + "\n")

    def _no_key(self) -> Unavailable:
        return Unavailable(
            f"A stored value cannot be decrypted: {self.key_file.name} in the state folder does "
            "not have its key.",
            accepted="Restore that file, or set the value again.",
        )
