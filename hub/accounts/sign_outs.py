"""End sign-ins at JupyterHub: after a sign-out, and after a password reset.

JupyterHub's own sign-out deletes the tokens of the browser's session. A page that is open in
another tab may ask for a new token at the same moment: with a code that was issued before the
sign-out, or with a request that was sent before it and arrives after it. Both are refused here.
"""

from __future__ import annotations

import datetime
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from jupyterhub import orm
from jupyterhub.apihandlers.auth import OAuthAuthorizeHandler
from jupyterhub.handlers.login import LogoutHandler

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy.orm import Session

_REMEMBERED = 10_000
_SERVER_NOTE = "Server at "
_SERVER_START = datetime.timedelta(seconds=60)
"""JupyterHub makes the token of a server at most so long before or after its start."""


class EndedSessions:
    """The ids of the browser sessions that signed out lately."""

    def __init__(self) -> None:
        self._ids: OrderedDict[str, None] = OrderedDict()

    def add(self, session_id: str) -> None:
        self._ids[session_id] = None
        while len(self._ids) > _REMEMBERED:
            self._ids.popitem(last=False)

    def __contains__(self, session_id: object) -> bool:
        return session_id in self._ids


class SignOutHandler(LogoutHandler):  # type: ignore[misc]  # jupyterhub has no types
    """Sign out; the codes of this browser session end as its tokens do."""

    def initialize(self, ended: EndedSessions) -> None:
        self._ended = ended

    async def handle_logout(self) -> None:
        session_id = self.get_session_cookie()
        if not session_id or not self.current_user:
            return
        self._ended.add(session_id)
        self.db.query(orm.OAuthCode).filter_by(session_id=session_id).delete()
        self.db.commit()


class AuthorizeHandler(OAuthAuthorizeHandler):  # type: ignore[misc]  # jupyterhub has no types
    """Issue codes, but none for a browser session that has signed out."""

    def initialize(self, ended: EndedSessions) -> None:
        self._ended = ended

    def get_current_user_cookie(self) -> Any:  # JupyterHub's user, which has no type
        if self.get_session_cookie() in self._ended:
            return None
        return super().get_current_user_cookie()


def end_sign_ins(database: Session, names: Iterable[str]) -> None:
    """Revoke the hub's cookies, codes and tokens of these users.

    Running servers keep their own token: without it they could not report their activity, and
    JupyterHub would lose them.
    """
    for name in names:
        user = orm.User.find(database, name)
        if user is None:
            continue
        user.cookie_id = orm.new_token()
        starts = [spawner.started for spawner in user.orm_spawners.values() if spawner.started]
        for token in list(user.api_tokens):
            if not _is_of_a_server(token, starts):
                database.delete(token)
        for code in list(user.oauth_codes):
            database.delete(code)
    database.commit()


def _is_of_a_server(token: orm.APIToken, starts: Iterable[datetime.datetime]) -> bool:
    # A user chooses the notes of their tokens, but hardly makes one while a server starts.
    return (token.note or "").startswith(_SERVER_NOTE) and any(
        abs(token.created - start) < _SERVER_START for start in starts
    )
