"""JupyterHub's sign-in over the embedded accounts."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyterhub.auth import Authenticator
from tornado import ioloop, web
from traitlets import Bool, List, Unicode, default

from ..errors import Unavailable
from . import usernames
from .demo import demo_accounts
from .sign_outs import AuthorizeHandler, EndedSessions, SignOutHandler, end_sign_ins
from .store import Account, Accounts, TooManyAttempts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jupyterhub.app import JupyterHub

# A hash takes 32 MB: two at a time are enough, and JupyterHub's event loop stays free.
_HASHERS = 2
_LONGEST_ADDRESS = 64
_RESET_CHECK_SECONDS = 1.0
"""How soon a password reset ends the sign-ins of its user."""


class CarrelAuthenticator(Authenticator):  # type: ignore[misc]  # jupyterhub has no types
    """Authenticate users with the names and passwords that ``carrel user`` manages.

    A site with OAuth, LDAP or PAM sets ``JupyterHub.authenticator_class`` to that authenticator.
    """

    database = Unicode(
        help="""
        Path of the accounts' SQLite file.

        ``carrel up`` sets it to ``hub/accounts.db`` in the state folder.
        """
    ).tag(config=True)

    demo = Bool(
        False,
        help="""
        Whether the sample accounts are created once JupyterHub has started.

        ``carrel up`` sets it.
        """,
    ).tag(config=True)

    trusted_proxies = List(
        Unicode(),
        help="""
        Addresses of reverse proxies in front of Carrel's own proxy.

        Sign-in limits count failures by client address. Add the addresses of such proxies
        here; otherwise all users behind a proxy count as one client.
        """,
    ).tag(config=True)

    def __init__(self, **kwargs: Any) -> None:  # traitlets' own signature
        self._accounts: Accounts | None = None
        super().__init__(**kwargs)
        self._threads = ThreadPoolExecutor(_HASHERS, thread_name_prefix="sign-in")
        self._hub: JupyterHub | None = None

    @default("allow_all")
    def _everyone_with_an_account(self) -> bool:
        return True

    @default("admin_users")
    def _administrators(self) -> set[str]:
        """Return the administrators, so that JupyterHub knows them before they sign in."""
        known = {account.name: account.admin for account in self.accounts.all()}
        if self.demo:
            known = {account.name: account.admin for account in demo_accounts()} | known
        return {name for name, admin in known.items() if admin}

    @property
    def accounts(self) -> Accounts:
        if self._accounts is None:
            self._accounts = Accounts(Path(self.database))
        return self._accounts

    def normalize_username(self, username: str) -> str:
        return usernames.normalise(username)

    def validate_username(self, username: str) -> bool:
        return usernames.is_valid(username) and bool(super().validate_username(username))

    async def authenticate(
        self, handler: web.RequestHandler, data: Mapping[str, str]
    ) -> dict[str, object] | None:
        """Return the name and role, or None; the sign-in page shows a required wait."""
        # First, so that the first sign-in with a new password does not end with earlier ones.
        await self.end_reset_sign_ins()
        try:
            found = await self._sign_in_thread(
                data.get("username", ""),
                data.get("password", ""),
                self._address(handler),
            )
        except (TooManyAttempts, Unavailable) as error:
            # The page shows tornado's log_message, in which "%" would be a format.
            raise web.HTTPError(error.http_status, str(error).replace("%", "%%")) from None
        return None if found is None else {"name": found.name, "admin": found.admin}

    def get_handlers(self, app: JupyterHub) -> list[tuple[object, ...]]:
        """Replace JupyterHub's sign-out, and start to watch for password resets."""
        self._hub = app
        ioloop.PeriodicCallback(self.end_reset_sign_ins, _RESET_CHECK_SECONDS * 1000).start()
        ended = {"ended": EndedSessions()}
        return [
            *super().get_handlers(app),
            ("/logout", SignOutHandler, ended),
            ("/api/oauth2/authorize", AuthorizeHandler, ended),
        ]

    async def end_reset_sign_ins(self) -> None:
        """End the sign-ins of users whose password was reset."""
        if self._hub is None:
            return
        loop = asyncio.get_running_loop()
        resets = await loop.run_in_executor(self._threads, self.accounts.password_resets)
        if resets:
            end_sign_ins(self._hub.db, resets)
            await loop.run_in_executor(self._threads, self.accounts.forget_resets, resets)

    async def refresh_user(
        self, user: Any, handler: web.RequestHandler | None = None
    ) -> bool | dict[str, object]:  # ``user`` is JupyterHub's, which has no types
        """Sign out users whose account was removed; a changed role takes effect."""
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, self.accounts.find, user.name)
        return False if found is None else {"name": found.name, "admin": found.admin}

    def _address(self, handler: web.RequestHandler) -> str:
        """Return the address of the client: the last hop that is not a trusted proxy.

        Only entries that trusted proxies appended count. A client can forge all entries further
        left in the header, and ``X-Real-IP``, which tornado would accept.
        """
        hops = handler.request.headers.get("X-Forwarded-For", "").split(",")
        for hop in reversed([hop.strip()[:_LONGEST_ADDRESS] for hop in hops]):
            if hop and hop not in self.trusted_proxies:
                return hop
        return ""

    async def _sign_in_thread(self, name: str, password: str, address: str) -> Account | None:
        def sign_in() -> Account | None:
            return self.accounts.sign_in(name, password, address=address)

        return await asyncio.get_running_loop().run_in_executor(self._threads, sign_in)
