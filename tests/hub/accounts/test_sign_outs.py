"""What JupyterHub forgets of a user whose password was reset."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from jupyterhub import orm
from sqlalchemy.orm import Session

from carrel.hub.accounts import CarrelAuthenticator
from carrel.hub.accounts.sign_outs import EndedSessions, end_sign_ins

PASSWORD = "a long password"


@pytest.fixture
def database() -> Iterator[Session]:
    """The database of a hub with ada and ben, each with a token, a code and a running server."""
    found = orm.new_session_factory("sqlite:///:memory:")()
    found.add(orm.OAuthClient(identifier="jupyterhub"))
    started = datetime.datetime(2026, 11, 2, 9, 0)  # as JupyterHub stores it
    for name in ("ada", "ben"):
        user = orm.User(name=name)
        found.add(user)
        found.add(orm.Spawner(name="", user=user, started=started))
        found.commit()
        for note, minutes in (("Server at /user/ada/", 0), ("Server at home", 30), ("mine", 0)):
            created = started + datetime.timedelta(minutes=minutes)
            found.add(orm.APIToken(user=user, note=note, created=created, hashed=f"{name} {note}"))
        found.add(orm.OAuthCode(code=f"code of {name}", user=user, session_id="s"))
    found.commit()
    yield found
    found.close()


def notes(database: Session, name: str) -> list[str]:
    return [token.note for token in orm.User.find(database, name).api_tokens]


def test_cookies_codes_and_tokens_end_but_the_token_of_a_running_server(database: Session) -> None:
    ada, ben = (orm.User.find(database, name).cookie_id for name in ("ada", "ben"))
    end_sign_ins(database, ["ada", "unknown"])
    assert notes(database, "ada") == ["Server at /user/ada/"]
    assert len(notes(database, "ben")) == 3
    assert [code.code for code in database.query(orm.OAuthCode)] == ["code of ben"]
    assert orm.User.find(database, "ada").cookie_id != ada
    assert orm.User.find(database, "ben").cookie_id == ben


def test_the_hub_ends_sign_ins_before_the_first_one_with_the_new_password(
    database: Session, tmp_path: Path
) -> None:
    authenticator = CarrelAuthenticator(database=str(tmp_path / "accounts.db"))
    accounts = authenticator.accounts
    accounts.add("ada", PASSWORD, admin=False)
    accounts.set_password("ada", "another password")
    handler = SimpleNamespace(request=SimpleNamespace(headers={}, remote_ip="127.0.0.1"))

    async def story() -> None:
        routes = {route for route, *_ in authenticator.get_handlers(SimpleNamespace(db=database))}
        assert routes == {"/login", "/logout", "/api/oauth2/authorize"}
        data = {"username": "ada", "password": "another password"}
        assert await authenticator.authenticate(handler, data) is not None  # type: ignore[arg-type]

    asyncio.run(story())
    assert notes(database, "ada") == ["Server at /user/ada/"]
    assert accounts.password_resets() == {}


def test_only_the_newest_ended_sessions_are_remembered() -> None:
    ended = EndedSessions()
    for number in range(10_001):
        ended.add(str(number))
    assert ("0" in ended, "1" in ended, "10000" in ended) == (False, True, True)
