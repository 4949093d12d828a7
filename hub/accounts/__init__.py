"""The embedded accounts, for sites without a sign-in system of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .store import Account, Accounts

if TYPE_CHECKING:
    from .authenticator import CarrelAuthenticator

__all__ = ["Account", "Accounts", "CarrelAuthenticator"]


def __getattr__(name: str) -> object:
    """Import the authenticator on first use.

    It imports JupyterHub, which would double the import time of the service and the commands.
    """
    if name == "CarrelAuthenticator":
        from .authenticator import CarrelAuthenticator  # noqa: PLC0415

        return CarrelAuthenticator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
