"""The page of a link: what it shows, and that only its form starts or opens something."""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from carrel.hub.controller.loop import Loop
from carrel.hub.scheduling.model.snapshot import Kind

from ...doubles import STUDENT1
from ..fakes import API, PREFIX
from ..page_checks import check_page, text_of
from ..site import Site, made_site, site

__all__ = ["site"]

OPEN = f"{PREFIX}open"
URL = "https://git.example.org/physics/course"
LINK = {"url": URL, "branch": "main", "path": "week1/a.ipynb"}
START = {**LINK, "how": "start", "group": "cs101", "devices": "1", "hours": "1"}


@pytest.fixture
def linked(tmp_path: Path) -> Iterator[Site]:
    with made_site(tmp_path, allowed_links=["https://git.example.org/physics/"]) as made:
        yield made


def sessions(site: Site) -> int:
    return len(site.api(STUDENT1).get(f"{API}/requests?kind={Kind.SESSION}").json()["requests"])


def wanted(answer: httpx.Response) -> tuple[str, str]:
    """Return the address in the session to which an answer leads, and its ticket."""
    assert answer.status_code == 303, answer.text
    (address,) = parse_qs(urlsplit(answer.headers["location"]).query)["next"]
    parts = urlsplit(address)
    return parts.path, parse_qs(parts.query)["carrel-open"][0]


def test_a_link_shows_what_it_opens_and_its_form_starts_a_session(linked: Site) -> None:
    page = linked.page(STUDENT1).get(OPEN, params={**LINK, "devices": "1", "group": "cs101"})
    assert page.status_code == 200
    check_page(page.text)
    shown = text_of(page.text)
    assert all(each in shown for each in LINK.values())
    assert '<option value="1" selected>' in page.text
    assert sessions(linked) == 0, "a link from another site starts nothing"

    answer = linked.page(STUDENT1).post(OPEN, data=START)
    path, ticket = wanted(answer)
    assert path == "/user/student1/lab"
    assert sessions(linked) == 1
    material = linked.api(STUDENT1).get(f"{API}/open-links/material", params={"ticket": ticket})
    assert material.json() == LINK
    other = linked.api().get(f"{API}/open-links/material", params={"ticket": ticket})
    assert other.status_code == 404


def test_a_running_session_is_used_and_another_one_can_be_started(linked: Site) -> None:
    linked.page(STUDENT1).post(OPEN, data=START)
    Loop(linked.context, node="local").cycle()
    page = linked.page(STUDENT1).get(OPEN, params=LINK)
    assert 'id="open-here"' in page.text
    check_page(page.text)
    path, _ = wanted(linked.page(STUDENT1).post(OPEN, data={**LINK, "how": "session"}))
    assert path == "/user/student1/lab"
    assert sessions(linked) == 1
    fields = {**START, "devices": "0", "server_name": "gpu"}
    path, _ = wanted(linked.page(STUDENT1).post(OPEN, data=fields))
    assert path == "/user/student1/gpu/lab"
    assert sessions(linked) == 2


def test_a_session_that_has_ended_since_is_not_replaced_unasked(linked: Site) -> None:
    answer = linked.page(STUDENT1).post(OPEN, data={**LINK, "how": "session"})
    assert answer.status_code == 404
    assert "Your session has ended. Start another one." in text_of(answer.text)
    check_page(answer.text)
    assert sessions(linked) == 0


@pytest.mark.parametrize(
    ("changes", "status", "says"),
    [
        ({"url": "https://git.example.org/other/r"}, 403, "This site does not open"),
        ({"url": ""}, 400, "The address of a repository or notebook is missing."),
        ({"path": "../x"}, 400, "is outside of the repository"),
        ({"devices": "9"}, 409, "9"),
        ({"devices": "many"}, 400, "many"),
        ({"hours": "never"}, 400, "Invalid number of hours"),
        ({"group": "physics"}, 403, "physics"),
        ({"image": "no-such-image"}, 400, "no-such-image"),
    ],
)
def test_what_cannot_be_opened_is_refused_with_a_sentence(
    linked: Site, changes: dict[str, str], status: int, says: str
) -> None:
    answer = linked.page(STUDENT1).post(OPEN, data={**START, **changes})
    assert (answer.status_code, says in text_of(answer.text)) == (status, True), answer.text
    check_page(answer.text)
    assert sessions(linked) == 0


def test_a_form_of_another_site_opens_nothing(linked: Site) -> None:
    other = linked.world.browser("student1-oauth")
    assert other.post(OPEN, data={**START, "csrf": "forged"}).status_code == 403
    assert sessions(linked) == 0


def test_a_link_and_a_badge_are_made(linked: Site) -> None:
    fields = {"url": f"{URL}/blob/main/week1/a.ipynb", "devices": "1", "image": ""}
    page = linked.page(STUDENT1).get(f"{OPEN}/link", params=fields)
    check_page(page.text)
    base = linked.world.app.state.web.settings.public_service_url
    made = f"{base}/open?url={URL}&branch=main&path=week1/a.ipynb&devices=1"
    badge = f"[![Open in Carrel]({base}/static/open.svg)]({made})"
    assert badge in unescape(text_of(page.text))
    assert linked.page(STUDENT1).get(made).status_code == 200
    assert linked.world.browser("nobody").get(f"{PREFIX}static/open.svg").status_code == 200
    assert "open/link" in linked.page(STUDENT1).get(f"{PREFIX}gallery").text
    for wrong in ({"url": "https://other.org/r"}, {"url": URL, "devices": "two"}):
        refused = linked.page(STUDENT1).get(f"{OPEN}/link", params=wrong)
        assert refused.status_code in (400, 403)
        check_page(refused.text)
        assert 'id="link-made"' not in refused.text


def test_a_site_without_allowed_addresses_says_so(site: Site) -> None:
    page = site.page(STUDENT1).get(OPEN, params=LINK)
    assert page.status_code == 404
    assert "not set up at this site" in text_of(page.text)
    assert "not set up at this site" in text_of(site.page(STUDENT1).get(f"{OPEN}/link").text)
    assert "open/link" not in site.page(STUDENT1).get(f"{PREFIX}gallery").text
