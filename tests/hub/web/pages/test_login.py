"""OAuth with the hub: state, verifier, cookies, and the redirect afterwards."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, quote, urlsplit

import httpx
import pytest

from carrel.hub.web.security.access import SESSION_COOKIE

from ..fakes import PREFIX, World


def begin(world: World, target: str) -> tuple[str, str]:
    """Begin a sign-in; return the state at the hub and the browser's cookie."""
    answer = world.client().get(f"{PREFIX}login?next={quote(target, safe='')}")
    assert answer.status_code == 303
    state = parse_qs(urlsplit(answer.headers["location"]).query)["state"][0]
    return state, answer.headers["set-cookie"].partition(";")[0]


def come_back(world: World, state: str, cookie: str, code: str = "good") -> httpx.Response:
    client = world.client(Cookie=cookie)
    return client.get(f"{PREFIX}oauth_callback?code={code}&state={state}")


def test_a_sign_in_returns_to_the_requested_page() -> None:
    world = World()
    answer = come_back(world, *begin(world, f"{PREFIX}requests/j-aaaaaaaa"))
    assert answer.status_code == 303
    assert answer.headers["location"] == f"{PREFIX}requests/j-aaaaaaaa"
    cookie = next(c for c in answer.headers.get_list("set-cookie") if SESSION_COOKIE in c)
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert f"Path={PREFIX}" in cookie
    assert "Secure" not in cookie
    session = cookie.partition(";")[0]
    assert world.client(Cookie=session).get(PREFIX).status_code == 200


def test_a_sign_in_returns_to_a_link_that_opens_material() -> None:
    world = World()
    link = f"{PREFIX}open?url=https://git.example.org/o/r&path=a%20b.ipynb"
    assert come_back(world, *begin(world, link)).headers["location"] == link
    for other in (f"{PREFIX}open?url=\\evil", f"{PREFIX}open/../x?a", f"{PREFIX}open?a=%0a|b"):
        assert come_back(world, *begin(world, other)).headers["location"] == PREFIX


def test_open_sign_ins_of_a_browser_are_bounded_and_the_newest_stay() -> None:
    """136 visits without a sign-in made cookies that the server refused (431)."""
    world, jar = World(), dict[str, str]()
    for _ in range(200):
        sent = "; ".join(f"{name}={value}" for name, value in jar.items())
        answer = world.client(Cookie=sent).get(f"{PREFIX}login")
        for cookie in answer.headers.get_list("set-cookie"):
            name, _, value = cookie.partition(";")[0].partition("=")
            if "Max-Age=0" in cookie:
                del jar[name]
            else:
                jar[name] = value
        state = parse_qs(urlsplit(answer.headers["location"]).query)["state"][0]
        assert f"carrel-state-{state[:8]}" in jar
    assert len(jar) == 8


def test_a_page_redirects_to_the_sign_in_and_back() -> None:
    answer = World().client().get(f"{PREFIX}wait/-")
    assert answer.status_code == 303
    assert answer.headers["location"] == f"{PREFIX}login?next={quote(f'{PREFIX}wait/-', safe='')}"


def test_the_cookie_is_secure_where_people_come_by_https() -> None:
    world = World()
    answer = world.client(**{"X-Forwarded-Proto": "https,http"}).get(f"{PREFIX}login")
    assert "Secure" in answer.headers["set-cookie"]


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.example/",
        "//evil.example/",
        "/hub/home",
        "/services/carrelx",
        f"{PREFIX}../../hub/admin",
        f"{PREFIX}wait/..",
        f"{PREFIX}wait/a/../../x",
        f"{PREFIX}/evil.example",
        f"{PREFIX}usage\n",
        f"{PREFIX}usage?x=1",
        f"https://127.0.0.1:8000{PREFIX}",
        f"{PREFIX}logout",
        f"{PREFIX}\\evil.example",
        "javascript:alert(1)",
    ],
)
def test_redirects_lead_to_our_own_pages_only(target: str) -> None:
    world = World()
    answer = come_back(world, *begin(world, target))
    assert answer.headers["location"] == PREFIX


def test_the_verifier_of_the_token_is_the_one_of_the_state() -> None:
    world = World()
    one, other = begin(world, PREFIX), begin(world, PREFIX)
    come_back(world, *one)
    come_back(world, *one)
    come_back(world, *other)
    first, again, second = (verifier for _, verifier in world.sign_in.codes)
    assert first == again != second
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", first)


def test_a_state_of_another_browser_does_not_sign_in() -> None:
    world = World()
    state, cookie = begin(world, PREFIX)
    other_state, _ = begin(world, PREFIX)
    for tried in (
        come_back(world, state, ""),
        come_back(world, other_state, cookie),
        come_back(world, state, cookie + "x"),
        come_back(world, "../..", cookie),
        come_back(world, "", cookie),
    ):
        assert tried.status_code == 401
        assert SESSION_COOKIE not in tried.headers.get("set-cookie", "")
    assert not world.sign_in.codes


def test_a_refused_or_wrong_code_is_said_on_a_page() -> None:
    world = World()
    state, cookie = begin(world, PREFIX)
    denied = world.client(Cookie=cookie).get(
        f"{PREFIX}oauth_callback?error=access_denied&state={state}"
    )
    assert denied.status_code == 403
    assert "denied the sign-in" in denied.text
    assert come_back(world, state, cookie, code="bad").status_code == 401


def test_sign_out_forgets_the_cookie_and_goes_to_the_hub() -> None:
    world = World()
    answer = world.own_page().post(f"{PREFIX}logout")
    assert (answer.status_code, answer.headers["location"]) == (303, "/hub/logout")
    assert f'{SESSION_COOKIE}=""' in answer.headers["set-cookie"]


def test_a_part_of_a_page_redirects_the_whole_page_to_the_sign_in() -> None:
    answer = World().client(**{"HX-Request": "true"}).get(f"{PREFIX}desk/live")
    assert (answer.status_code, answer.headers["hx-redirect"]) == (401, PREFIX)
