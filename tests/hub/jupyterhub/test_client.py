"""The client of JupyterHub: its results, errors and cache."""

from __future__ import annotations

import json

import httpx
import pytest

from carrel.hub.errors import NotFound, Refused, Unavailable
from carrel.hub.jupyterhub.client import HubApi

from ..doubles import Stopwatch


def test_an_error_about_a_missing_user_has_the_name() -> None:
    """The hub's own response says only ``None``."""
    gone = httpx.MockTransport(lambda _: httpx.Response(404, json={"message": None}))
    with pytest.raises(NotFound, match=r"^JupyterHub has no user ben\. An administrator can"):
        HubApi("http://hub/api", "token", transport=gone).user("ben")


@pytest.mark.parametrize(
    ("status", "expected"), [(429, Unavailable), (503, Unavailable), (403, Refused)]
)
def test_only_a_final_answer_refuses_a_start(status: int, expected: type[Exception]) -> None:
    """A full spawn limit (429) is tried again; a server that may not start is not."""
    hub = httpx.MockTransport(lambda _: httpx.Response(status, json={"message": "no"}))
    with pytest.raises(expected):
        HubApi("http://hub/api", "token", transport=hub).start_server("ada", "", {})


@pytest.mark.parametrize(
    ("authenticator", "own"),
    [
        ("carrel.hub.accounts.authenticator.CarrelAuthenticator", True),
        ("oauthenticator.github.GitHubOAuthenticator", False),
    ],
)
def test_the_kind_of_sign_in_is_read_once_it_is_known(authenticator: str, own: bool) -> None:
    answers = [
        httpx.Response(503, json={"message": "no"}),
        httpx.Response(200, json={"authenticator": {"class": authenticator}}),
    ]
    transport = httpx.MockTransport(lambda _: answers.pop(0))
    hub = HubApi("http://hub/api", "token", transport=transport)
    assert [hub.uses_accounts() for _ in range(3)] == [True, own, own]


class Site:
    """A hub with users that counts the requests for them."""

    def __init__(self) -> None:
        self.names, self.asked = ["ada"], 0
        self.clock = Stopwatch()
        transport = httpx.MockTransport(self._answer)
        self.hub = HubApi("http://hub/api", "token", transport=transport, clock=self.clock)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            self.names.append(request.url.path.rpartition("/")[2])
            return httpx.Response(201)
        self.asked += 1
        return httpx.Response(200, json=[{"name": name} for name in self.names])

    def seen(self, *, within: float = 0.0) -> tuple[list[str], int]:
        return [user.name for user in self.hub.users(within=within)], self.asked


def test_lists_of_users_may_be_cached_for_seconds() -> None:
    site = Site()
    assert site.seen(within=5) == (["ada"], 1)
    site.names.append("ben")
    site.clock.pass_(4)
    assert site.seen(within=5) == (["ada"], 1)
    assert site.seen() == (["ada", "ben"], 2), "decisions use fresh data"
    site.names.append("cleo")
    site.clock.pass_(5)
    assert site.seen(within=5) == (["ada", "ben", "cleo"], 3)


def test_own_changes_are_visible_immediately() -> None:
    site = Site()
    site.seen(within=5)
    site.hub.add_user("ben", admin=False)
    assert site.seen(within=5) == (["ada", "ben"], 2)


def test_many_users_are_added_in_a_few_calls_and_none_in_no_call() -> None:
    asked: list[tuple[str, str, dict[str, list[str]]]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append((request.method, request.url.path, json.loads(request.content)))
        return httpx.Response(409, json={"message": "all exist"})

    hub = HubApi("http://hub/api", "token", transport=httpx.MockTransport(answer))
    hub.add_users(())
    hub.add_users(("ada", "ben"))
    assert [*asked] == [("POST", "/api/users", {"usernames": ["ada", "ben"], "admin": False})]
    names = tuple(f"s{number}" for number in range(60))
    hub.add_users(names)
    sizes = [body["usernames"] for _, _, body in asked[1:]]
    assert [name for part in sizes for name in part] == list(names)
    assert len(sizes) == 3


def test_a_page_waits_two_seconds_for_a_hub_that_hangs_and_the_next_one_not_at_all() -> None:
    clock, asked = Stopwatch(), list[float]()

    def hangs(request: httpx.Request) -> httpx.Response:
        asked.append(request.extensions["timeout"]["read"])
        raise httpx.ReadTimeout("no answer")

    answers = [lambda _: httpx.Response(200, json=[{"name": "ada"}])]
    transport = httpx.MockTransport(lambda request: (answers or [hangs])[-1](request))  # noqa: PLW0108
    hub = HubApi("http://hub/api", "token", transport=transport, clock=clock)
    known = hub.users()
    answers.clear()
    with pytest.raises(Unavailable):
        hub.user("ada", for_page=True)
    with pytest.raises(Unavailable):
        hub.user("ada", for_page=True)
    assert (asked, hub.away) == ([2.0], True)
    clock.pass_(4)
    assert hub.users(within=3) == known, "what was known is shown"
    assert asked == [2.0]
    with pytest.raises(Unavailable):
        hub.user("ada")
    assert asked == [2.0, 10.0], "who decides asks anyway"
    clock.pass_(6)
    with pytest.raises(Unavailable):
        hub.user("ada", for_page=True)
    assert asked == [2.0, 10.0, 2.0]
    answers.append(lambda _: httpx.Response(200, json={"name": "ada"}))
    hub.user("ada")
    assert not hub.away
