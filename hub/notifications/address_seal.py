"""Encrypt the addresses of channels, each for its own channel."""

from __future__ import annotations

from dataclasses import dataclass

from ..secrets.cipher import Cipher
from .records import Channel


@dataclass(frozen=True, slots=True)
class AddressSeal:
    """Addresses under the keys of the site; a copy in another row of the database is refused."""

    cipher: Cipher

    def close(self, channel_id: str, address: str) -> str:
        """Return an address as it is stored."""
        return self.cipher.encrypt(address.encode(), purpose=_purpose(channel_id))

    def open(self, channel: Channel) -> str:
        """Return the address of a channel. Raises Unavailable if its key is lost."""
        return self.cipher.decrypt(channel.sealed, purpose=_purpose(channel.id)).decode()


def _purpose(channel_id: str) -> str:
    return f"notifications/{channel_id}"
