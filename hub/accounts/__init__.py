"""The embedded accounts: who may sign in where a site brings no sign-in of its own."""

from __future__ import annotations

from .authenticator import CarrelAuthenticator
from .store import Account, Accounts

__all__ = ["Account", "Accounts", "CarrelAuthenticator"]
