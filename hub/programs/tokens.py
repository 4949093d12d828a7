"""Tokens of programs: 256 random bits, of which the service stores only a hash."""

from __future__ import annotations

import hashlib
import secrets
from typing import Final

PREFIX: Final = "carrel-program-"
"""Tells these tokens from those of JupyterHub, and helps to find leaked ones."""


def new_token() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def is_program_token(token: str) -> bool:
    return token.startswith(PREFIX)


def token_hash(token: str) -> str:
    """Return what is stored. A plain hash is enough: the token cannot be guessed."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
