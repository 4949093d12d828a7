"""Permissions of every kind of caller for every kind of route."""

from __future__ import annotations

from dataclasses import replace

import pytest

from carrel.hub.errors import Conflict, StaleEpoch
from carrel.hub.web.security.access import SESSION_COOKIE

from ..fakes import API, HUB_TOKEN, PREFIX, World, event_in, job, session

JOB = {"group": "cs101", "notebook": {"name": "a.ipynb", "content": "{}"}}
STARTED = {"pid": 7, "started_at": 1.0}


@pytest.fixture
def world() -> World:
    made = World()
    made.service.put(job(), session())
    return made


@pytest.mark.parametrize(
    ("token", "reads", "writes"),
    [
        ("ada-all", 200, 201),
        ("ada-reads", 200, 403),
        ("ada-submits", 403, 201),
        ("ada-access", 403, 403),
        ("ada-elsewhere", 403, 403),
        ("unknown", 401, 401),
        ("attempt-token", 401, 401),
        (HUB_TOKEN, 403, 403),
    ],
)
def test_programs_need_the_scope_for_what_they_do(
    world: World, token: str, reads: int, writes: int
) -> None:
    program = world.program(token)
    assert program.get(f"{API}/requests").status_code == reads
    assert program.post(f"{API}/requests", json=JOB).status_code == writes


def test_a_token_without_a_scope_is_told_which_one_it_lacks(world: World) -> None:
    error = world.program("ada-access").get(f"{API}/me").json()["error"]
    assert error["code"] == "forbidden"
    assert error["message"] == "This token may not read."
    assert "custom:carrel:read" in error["accepted"]


def test_unauthenticated_callers_get_the_health_only(world: World) -> None:
    stranger = world.client()
    assert stranger.get(f"{API}/health").json() == {"status": "ok"}
    for path in ("requests", "requests/j-aaaaaaaa", "pool", "usage", "me"):
        answer = stranger.get(f"{API}/{path}")
        assert answer.status_code == 401, path
        assert answer.json()["error"]["code"] == "not_signed_in"


def test_bearer_is_as_good_as_token(world: World) -> None:
    assert world.client(Authorization="bearer ada-all").get(f"{API}/me").json()["name"] == "ada"


@pytest.mark.parametrize("header", ["Basic YTpi", "token", "token a b", ""])
def test_another_authorization_header_is_refused_even_beside_a_cookie(
    world: World, header: str
) -> None:
    assert world.browser(Authorization=header).get(f"{API}/me").status_code == 401


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "sessions", {"owner": "ada", "server_name": ""}),
        ("POST", "requests/s-aaaaaaaa/stop", {"cause": "stopped"}),
        ("POST", "leases/s-aaaaaaaa.1/launch", None),
    ],
)
@pytest.mark.parametrize(
    ("caller", "expected"),
    [(HUB_TOKEN, 200), ("ada-all", 403), ("attempt-token", 403), (None, 401)],
)
def test_only_the_hub_opens_and_ends_sessions(
    *,
    world: World,
    method: str,
    path: str,
    body: dict[str, object] | None,
    caller: str | None,
    expected: int,
) -> None:
    client = world.program(caller) if caller else world.own_page()
    assert client.request(method, f"{API}/{path}", json=body).status_code == expected


@pytest.mark.parametrize(
    ("caller", "started", "events"),
    [
        ("attempt-token", 200, 200),
        ("other-attempt", 403, 403),
        (HUB_TOKEN, 200, 403),
        ("ada-all", 403, 403),
        (None, 401, 401),
    ],
)
def test_an_attempt_reports_for_its_own_lease_only(
    world: World, caller: str | None, started: int, events: int
) -> None:
    client = world.program(caller) if caller else world.own_page()
    lease = f"{API}/leases/j-aaaaaaaa.1"
    assert client.post(f"{lease}/started", json=STARTED).status_code == started
    answer = client.post(f"{lease}/events", json={"events": [event_in(1), event_in(2)]})
    assert answer.status_code == events
    if events == 200:
        assert answer.json() == {"accepted": 2}


def test_a_stale_lease_answers_409(world: World) -> None:
    world.service.refusal = StaleEpoch("The lease was given to another attempt.")
    answer = world.program("attempt-token").post(f"{API}/leases/j-aaaaaaaa.1/started", json=STARTED)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "stale_epoch")


def test_the_hub_follows_any_request_but_does_not_act_as_a_person(world: World) -> None:
    hub = world.program(HUB_TOKEN)
    assert hub.get(f"{API}/requests/j-aaaaaaaa").status_code == 200
    assert hub.delete(f"{API}/requests/j-aaaaaaaa").status_code == 403
    assert hub.get(f"{API}/usage").status_code == 403


def test_a_user_does_not_see_requests_of_others(world: World) -> None:
    assert world.browser("ben-oauth").get(f"{API}/requests/j-aaaaaaaa").status_code == 404
    assert world.browser("root-oauth").get(f"{API}/requests/j-aaaaaaaa").status_code == 200


def test_without_jupyterhub_the_response_is_503_with_a_message(world: World) -> None:
    world.sign_in.away = True
    answer = world.program("ada-all").get(f"{API}/me")
    assert answer.status_code == 503
    assert answer.headers["retry-after"]
    assert answer.json()["error"]["code"] == "unavailable"
    page = world.browser().get(PREFIX)
    assert page.status_code == 503
    assert "JupyterHub does not answer." in page.text


def test_a_foreign_cookie_is_rejected(world: World) -> None:
    """A token with few scopes, put into a cookie, must not get all rights of its user."""
    for forged in (
        "ada-oauth",
        f"ada-oauth.{'a' * 43}",
        world.web.signer.wrap("other", "ada-oauth"),
    ):
        client = world.client(Cookie=f"{SESSION_COOKIE}={forged}")
        assert client.get(f"{API}/me").status_code == 401


@pytest.mark.parametrize("session_id", ["session-2", ""])
def test_a_cookie_of_a_session_that_has_signed_out_signs_nobody_in(
    world: World, session_id: str
) -> None:
    """Another tab got its token at the moment of the sign-out."""
    known = world.sign_in.people["ada-oauth"]
    world.sign_in.people["ada-oauth"] = replace(known, session_id="session-1")

    def status(session: str) -> int:
        cookies = f"{SESSION_COOKIE}={world.cookie()}"
        if session:
            cookies += f"; jupyterhub-session-id={session}"
        return world.client(Cookie=cookies).get(f"{API}/me").status_code

    assert (status("session-1"), status(session_id)) == (200, 401)


# -- case 31 of the fault list: cross-site POST ------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Sec-Fetch-Site": "same-origin", "X-Carrel-CSRF": "good"}, 201),
        ({"Origin": "http://127.0.0.1:8000", "X-Carrel-CSRF": "good"}, 201),
        # A proxy in front passes the host on without its port.
        ({"Host": "site", "Origin": "https://site:8443", "X-Carrel-CSRF": "good"}, 201),
        ({"Host": "site:80", "Origin": "https://site:8443", "X-Carrel-CSRF": "good"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 403),
        ({"Sec-Fetch-Site": "same-origin", "X-Carrel-CSRF": "no.t"}, 403),
        ({"Sec-Fetch-Site": "same-origin", "X-Carrel-CSRF": "of-ben"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "X-Carrel-CSRF": "good"}, 403),
        ({"Sec-Fetch-Site": "same-site", "X-Carrel-CSRF": "good"}, 403),
        ({"Origin": "http://evil.example", "X-Carrel-CSRF": "good"}, 403),
        (
            {
                "Origin": "http://evil.example",
                "Sec-Fetch-Site": "same-origin",
                "X-Carrel-CSRF": "good",
            },
            403,
        ),
        ({"Origin": "null", "X-Carrel-CSRF": "good"}, 403),
        ({"X-Carrel-CSRF": "good"}, 403),
    ],
)
def test_case_31_a_change_by_cookie_needs_its_form_token_and_our_own_page(
    world: World, headers: dict[str, str], expected: int
) -> None:
    tokens = {"good": world.form_token(), "of-ben": world.form_token("ben-oauth")}
    if "X-Carrel-CSRF" in headers:
        given = headers["X-Carrel-CSRF"]
        headers = headers | {"X-Carrel-CSRF": tokens.get(given, given)}
    answer = world.browser(**headers).post(f"{API}/requests", json=JOB)
    assert answer.status_code == expected
    if expected == 403:
        assert answer.json()["error"]["message"].endswith(".")
        assert not world.service.calls


@pytest.mark.parametrize(
    "path", ["sessions", "sessions/stop", "requests/j-aaaaaaaa/cancel", "logout"]
)
def test_case_31_forms_of_other_sites_change_nothing(world: World, path: str) -> None:
    answer = world.browser(**{"Sec-Fetch-Site": "cross-site"}).post(
        f"{PREFIX}{path}", data={"csrf": world.form_token(), "devices": "1", "hours": "1"}
    )
    assert answer.status_code == 403
    assert "another site" in answer.text
    assert not world.service.calls


def test_case_31_programs_need_no_form_token(world: World) -> None:
    program = world.program("ada-all")
    program.headers["Origin"] = "http://evil.example"
    assert program.post(f"{API}/requests", json=JOB).status_code == 201


def test_refusals_keep_their_status_and_say_what_is_accepted(world: World) -> None:
    world.service.refusal = Conflict(
        "It runs already.", accepted="Stop it first.", field="server_name"
    )
    answer = world.own_page().delete(f"{API}/requests/j-aaaaaaaa")
    assert answer.status_code == 409
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert (body["status"], body["code"], body["detail"], body["accepted"], body["field"]) == (
        409,
        "conflict",
        "It runs already.",
        "Stop it first.",
        "server_name",
    )
    assert body["error"] == {
        "code": "conflict",
        "message": "It runs already.",
        "accepted": "Stop it first.",
    }
