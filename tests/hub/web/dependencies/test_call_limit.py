"""A user who floods the service is refused with 429; the calls of others go on."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from http import HTTPStatus

import httpx
import pytest

from carrel.hub.interfaces.clock import Instant
from carrel.hub.web.dependencies import call_limit
from carrel.hub.web.security.call_budgets import BURST_SECONDS, CallBudgets

from ..fakes import API, HUB_TOKEN, PREFIX, Client, World, event_in, job

TOO_MANY = HTTPStatus.TOO_MANY_REQUESTS


class StandingBudgets(CallBudgets):
    """Ten calls for each user and 50 for each address, for ever; the work of calls is free."""

    def __init__(self) -> None:
        super().__init__(10 / BURST_SECONDS, lambda: Instant(0.0))

    def charge(self, account: str, seconds: float) -> None:
        """Charge nothing."""


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(call_limit, "REFUSAL_SECONDS", 0.0)
    world = World(metrics_token="metrics")
    world.app.state.web = replace(world.web, call_budgets=StandingBudgets())
    world.service.put(job(), job(id="j-bbbbbbbb", owner="ben"))
    return world


def statuses(client: Client, path: str, calls: int) -> list[int]:
    return [client.get(path).status_code for _ in range(calls)]


def test_a_flood_gets_429_with_retry_after_while_others_are_answered(world: World) -> None:
    ada, ben = world.program("ada-all"), world.browser("ben-oauth")

    async def flood() -> list[httpx.Response]:
        transport = httpx.ASGITransport(world.app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1:8000", headers=ada.headers
        ) as client:
            return await asyncio.gather(*(client.get(f"{API}/requests") for _ in range(40)))

    answers = asyncio.run(flood())
    refused = [answer for answer in answers if answer.status_code == TOO_MANY]
    assert len(answers) - len(refused) == 10
    assert {answer.headers["Retry-After"] for answer in refused} == {"1"}
    problem = refused[0].json()
    assert problem["code"] == "too_many_calls"
    assert problem["detail"] == "You make more calls than one user or program may."
    assert problem["accepted"].startswith("Wait 1 s and try again.")
    assert ben.get(f"{API}/requests").status_code == HTTPStatus.OK
    assert ben.get(f"{PREFIX}").status_code == HTTPStatus.OK


def test_all_credentials_of_a_user_count_together(world: World) -> None:
    assert statuses(world.program("ada-all"), f"{API}/me", 5) == [200] * 5
    assert statuses(world.program("ada-reads"), f"{API}/me", 3) == [200] * 3
    assert statuses(world.browser(), f"{API}/me", 3) == [200, 200, TOO_MANY]


def test_a_page_explains_the_refusal(world: World) -> None:
    statuses(world.browser(), f"{API}/me", 10)
    answer = world.browser().get(PREFIX)
    assert answer.status_code == TOO_MANY
    assert "You make more calls than one user or program may." in answer.text
    assert "Retry-After" in answer.headers


def test_callers_without_a_sign_in_count_by_their_address(world: World) -> None:
    assert statuses(world.client(), f"{API}/me", 20) == [401] * 20
    assert statuses(world.program("guessed"), f"{API}/me", 31) == [401] * 30 + [TOO_MANY]
    assert world.client().get(PREFIX).status_code == TOO_MANY
    assert world.browser().get(PREFIX).status_code == 200, "signed in from the same address"


def test_parts_of_carrel_and_health_checks_are_not_limited(world: World) -> None:
    attempt = world.program("attempt-token")
    events = f"{API}/leases/j-aaaaaaaa.1/events"
    for seq in range(1, 61):
        assert attempt.post(events, json={"events": [event_in(seq)]}).status_code == 200
    assert statuses(world.program(HUB_TOKEN), f"{API}/requests/j-aaaaaaaa", 60) == [200] * 60
    assert statuses(world.program("metrics"), "/metrics", 60) == [200] * 60
    for path in (f"{API}/health", "/healthz", f"{PREFIX}healthz", f"{PREFIX}static/carrel.js"):
        assert statuses(world.client(), path, 60) == [200] * 60


def test_a_wrong_attempt_token_counts_by_address(world: World) -> None:
    events = f"{API}/leases/j-aaaaaaaa.1/events"
    guess = world.program("no-attempt")
    answers = [guess.post(events, json={"events": []}).status_code for _ in range(51)]
    assert answers == [403] * 50 + [TOO_MANY]


def test_the_work_of_a_call_is_charged() -> None:
    """Few large calls are refused as many small ones are."""
    charged = list[tuple[str, float]]()

    class Listed(CallBudgets):
        def charge(self, account: str, seconds: float) -> None:
            charged.append((account, seconds))

    world = World()
    world.app.state.web = replace(world.web, call_budgets=Listed(20.0))
    world.service.put(*(job(id=f"j-{number:08}") for number in range(200)))
    assert world.program("ada-all").get(f"{API}/requests").status_code == 200
    ((account, seconds),) = charged
    assert account == "user ada"
    assert 0 < seconds < BURST_SECONDS
