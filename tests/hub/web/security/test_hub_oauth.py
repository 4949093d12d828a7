"""HubSignIn against a small hub of our own, over real HTTP."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from jupyterhub.services.auth import HubOAuth

from carrel.hub.config.settings import Settings
from carrel.hub.errors import NotSignedIn, Unavailable
from carrel.hub.interfaces.clock import Instant
from carrel.hub.jupyterhub.availability import HubAvailability
from carrel.hub.records.identity import Identity
from carrel.hub.web.security.hub_oauth import (
    ACCESS_SCOPE,
    READ_SCOPE,
    SUBMIT_SCOPE,
    HubSignIn,
    TokenHolder,
    hub_oauth,
)

USERS = {
    "token ada": {
        "kind": "user",
        "name": "ada",
        "admin": False,
        "groups": ["cs101"],
        "scopes": [ACCESS_SCOPE, f"{READ_SCOPE}!user=ada"],
    },
    "token session": {
        "kind": "user",
        "session_id": "session-1",
        "name": "ada",
        "scopes": [ACCESS_SCOPE, "access:servers!server=ada/gpu"],
    },
    "token service": {"kind": "service", "name": "grader", "scopes": [ACCESS_SCOPE]},
}


class Hub(BaseHTTPRequestHandler):
    seen: list[str]

    def do_GET(self) -> None:
        model = USERS.get(self.headers["Authorization"])
        self._answer(200 if model else 403, model or {"status": 403, "message": "Forbidden"})

    def do_POST(self) -> None:
        fields = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        good = fields["code"] == ["good"] and fields["client_secret"] == ["service-token"]
        type(self).seen.append(fields["code_verifier"][0])
        body = {"access_token": "ada"} if good else {"error": "invalid_grant"}
        self._answer(200 if good else 400, body)

    def _answer(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def hub() -> Iterator[ThreadingHTTPServer]:
    Hub.seen = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> Instant:
        return Instant(self.now)


def oauth_at(server: ThreadingHTTPServer) -> HubOAuth:
    return hub_oauth(Settings(hub_port=server.server_address[1]), "service-token")


def sign_in_at(server: ThreadingHTTPServer) -> HubSignIn:
    return HubSignIn(oauth_at(server))


def test_a_token_is_a_person_with_scopes(hub: ThreadingHTTPServer) -> None:
    person = asyncio.run(sign_in_at(hub).person("ada"))
    assert person == TokenHolder(
        identity=Identity(name="ada", groups=frozenset({"cs101"})),
        scopes=frozenset({ACCESS_SCOPE, f"{READ_SCOPE}!user=ada"}),
    )
    assert person.may(ACCESS_SCOPE)
    assert person.may(READ_SCOPE)
    assert not person.may(SUBMIT_SCOPE)


def test_unknown_tokens_and_services_are_not_users(hub: ThreadingHTTPServer) -> None:
    sign_in = sign_in_at(hub)

    async def ask() -> list[TokenHolder | None]:
        return [await sign_in.person("unknown"), await sign_in.person("service")]

    assert asyncio.run(ask()) == [None, None]


def test_known_users_continue_while_jupyterhub_is_away(hub: ThreadingHTTPServer) -> None:
    clock = Clock()
    oauth = oauth_at(hub)
    sign_in = HubSignIn(oauth, clock=clock)

    async def story() -> None:
        first = await sign_in.person("ada", "session-1")
        clock.now += 6
        oauth.api_url = "http://127.0.0.1:9/hub/api"  # no server listens there
        assert await sign_in.person("ada", "session-1") == first
        with pytest.raises(Unavailable, match="is not responding"):
            await sign_in.person("ada", "session-2")
        with pytest.raises(Unavailable):
            await sign_in.person("stranger")
        clock.now += 3601
        with pytest.raises(Unavailable):
            await sign_in.person("ada", "session-1")

    asyncio.run(story())


def test_known_users_do_not_wait_for_a_hub_that_hangs(
    hub: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    oauth, availability, asked = oauth_at(hub), HubAvailability(), list[str]()
    clock = Clock()
    sign_in = HubSignIn(oauth, clock=clock, availability=availability)

    async def hangs(token: str, **_: object) -> None:
        asked.append(token)
        await asyncio.Event().wait()

    async def story() -> None:
        known = await sign_in.person("ada")
        clock.now += 6
        monkeypatch.setattr(oauth, "user_for_token", hangs)
        begin = time.monotonic()
        assert await sign_in.person("ada") == known
        assert 1.5 < time.monotonic() - begin < 4
        for _ in range(10):
            assert await sign_in.person("ada") == known
        assert (asked, availability.away) == (["ada"], True)

    asyncio.run(story())


def test_a_new_token_waits_longer_for_a_slow_hub_than_a_known_one(
    hub: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carrel.hub.web.security.hub_oauth.PAGE_SECONDS", 0.01)
    oauth = oauth_at(hub)
    look_up = oauth.user_for_token

    async def slow(token: str, **options: Any) -> object:
        await asyncio.sleep(0.1)
        return await look_up(token, **options)

    monkeypatch.setattr(oauth, "user_for_token", slow)
    person = asyncio.run(HubSignIn(oauth).person("ada"))
    assert person is not None
    assert person.identity.name == "ada"


@pytest.mark.parametrize("token", ["session", "ada"])
def test_a_token_ends_within_five_seconds_of_a_sign_out(
    hub: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    """The token of a session, a browser or a program."""
    clock = Clock()
    sign_in = HubSignIn(oauth_at(hub), clock=clock)

    async def story() -> None:
        known = await sign_in.person(token)
        assert known is not None
        monkeypatch.delitem(USERS, f"token {token}")
        clock.now += 5
        assert await sign_in.person(token) == known
        clock.now += 0.1
        assert await sign_in.person(token) is None

    asyncio.run(story())


def test_the_code_is_exchanged_with_its_verifier(hub: ThreadingHTTPServer) -> None:
    sign_in = sign_in_at(hub)

    async def story() -> None:
        assert await sign_in.token_for_code("good", "verifier") == "ada"
        with pytest.raises(NotSignedIn, match="did not confirm"):
            await sign_in.token_for_code("bad", "verifier")

    asyncio.run(story())
    assert Hub.seen == ["verifier", "verifier"]


def test_the_browser_is_sent_with_a_challenge_and_no_verifier(hub: ThreadingHTTPServer) -> None:
    url = urlsplit(sign_in_at(hub).authorize_url("the-state", "the-verifier"))
    query = {key: values[0] for key, values in parse_qs(url.query).items()}
    assert url.path == "/hub/api/oauth2/authorize"
    assert not url.netloc
    assert query == {
        "client_id": "service-carrel",
        "redirect_uri": "/services/carrel/oauth_callback",
        "response_type": "code",
        "state": "the-state",
        "code_challenge": "sP6XQ2T7IHwj7eBkdcI9xyC8WxEik0RMQk0tVGDKZPI",
        "code_challenge_method": "S256",
    }


def test_calls_that_arrive_together_ask_jupyterhub_once(
    hub: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many streams and calls of one user check the same token at the same moment."""
    sign_in, asked = sign_in_at(hub), list[str]()
    answer = Hub.do_GET

    def do_get(self: Hub) -> None:
        asked.append(self.path)
        answer(self)

    monkeypatch.setattr(Hub, "do_GET", do_get)

    async def together() -> list[TokenHolder | None]:
        return await asyncio.gather(*(sign_in.person("ada") for _ in range(50)))

    found = asyncio.run(together())
    assert all(person and person.identity.name == "ada" for person in found)
    assert len(asked) == 1
