"""The attempts' own tokens: made once, kept only as a hash."""

from __future__ import annotations

import hashlib
import secrets


def new_token() -> str:
    return secrets.token_urlsafe(32)


def token_hash(token: str) -> str:
    """What the store keeps of an attempt's token."""
    return hashlib.sha256(token.encode()).hexdigest()
