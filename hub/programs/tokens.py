"""Tokens of programs: 256 random bits, of which the service stores only a hash."""

from __future__ import annotations

import hashlib
import secrets

from ..messages.programs import PREFIX


def new_token() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def token_hash(token: str) -> str:
    """Return what is stored. A plain hash is enough: the token cannot be guessed."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
