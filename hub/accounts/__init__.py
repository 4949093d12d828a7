"""The embedded accounts: who may sign in where a site brings no sign-in of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .store import Account, Accounts

if TYPE_CHECKING:
    from .authenticator import CarrelAuthenticator

__all__ = ["Account", "Accounts", "CarrelAuthenticator"]


def __getattr__(name: str) -> object:
    """Import the authenticator when it is asked for: JupyterHub, which takes it from here, is half
    of what the service and the command line would import otherwise."""
    if name == "CarrelAuthenticator":
        from .authenticator import CarrelAuthenticator  # noqa: PLC0415

        return CarrelAuthenticator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
