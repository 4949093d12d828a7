"""Sign values that a browser stores and returns."""

from __future__ import annotations

import base64
import hashlib
import hmac


class Signer:
    """HMAC-SHA256 under one key; a purpose separates kinds of values."""

    def __init__(self, key: str) -> None:
        self._key = key.encode()

    def mac(self, purpose: str, value: str) -> str:
        """Return the MAC of a value: 43 URL-safe characters."""
        digest = hmac.digest(self._key, f"{purpose}\0{value}".encode(), hashlib.sha256)
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")

    def wrap(self, purpose: str, value: str) -> str:
        return f"{value}.{self.mac(purpose, value)}"

    def unwrap(self, purpose: str, wrapped: str) -> str | None:
        """Return the value, or None if it was not signed here for this purpose."""
        value, _, mac = wrapped.rpartition(".")
        genuine = same(mac, self.mac(purpose, value))
        return value if genuine else None


def same(one: str, other: str) -> bool:
    """Compare in constant time, for any characters."""
    return hmac.compare_digest(
        one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass")
    )
