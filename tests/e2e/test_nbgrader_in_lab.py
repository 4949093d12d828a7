"""nbgrader's own Assignment List in JupyterLab: fetch, submit, and feedback, by its buttons."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from carrel.extensions.nbgrader.exchange import pack

from ..courses.notebook_samples import source
from .browser import SESSION_MS, Person
from .classes import the_demo_is_ready
from .support import Installation

pytestmark = [pytest.mark.browser, pytest.mark.slow]

USER = "student1"


@pytest.fixture
def released(site: Installation) -> Installation:
    """One assignment of cs101, and student1 in a session."""
    the_demo_is_ready(site)
    form = {"files": pack({"ps1.ipynb": source()})}
    made = site.api("POST", "/exchange/assignment/cs101/ps1", user="teacher", data=form)
    assert made.status_code == 200, made.text
    site.start_session(USER, devices=0)
    return site


def row(person: Person, kind: str) -> Locator:
    """Return the row of ps1 among the released, fetched or submitted ones."""
    found = person.page.locator(f"#{kind}_assignments_list .list_item", has_text="ps1").first
    expect(found).to_be_visible(timeout=SESSION_MS)
    return found


def test_the_buttons_fetch_submit_and_show_feedback(released: Installation, person: Person) -> None:
    page, site = person.page, released
    page.goto(f"{site.service}/wait/-")
    page.wait_for_url(f"**/user/{USER}/lab**", timeout=SESSION_MS)
    page.get_by_role("menuitem", name="Nbgrader").click(timeout=SESSION_MS)
    page.get_by_role("menuitem", name="Assignment List").click()
    waiting = row(person, "released")
    person.picture("nbgrader-released")
    waiting.get_by_role("button", name="Fetch").click()
    here = row(person, "fetched")
    assert (site.state / "homes" / USER / "ps1" / "ps1.ipynb").is_file()
    here.get_by_role("button", name="Submit").click()
    row(person, "submitted")
    person.picture("nbgrader-submitted")
    (sent,) = site.api("GET", "/exchange/submissions/cs101/ps1", user="teacher").json()[
        "submissions"
    ]
    form = {"timestamp": sent["timestamp"], "files": pack({"ps1.html": b"<p>Well done.</p>"})}
    given = site.api("POST", f"/exchange/feedback/cs101/ps1/{USER}", user="teacher", data=form)
    assert given.status_code == 200, given.text
    page.locator("#refresh_assignments_list").click()
    submitted = row(person, "submitted")
    submitted.get_by_role("button", name="Fetch Feedback").click()
    page.get_by_text("(view feedback)").click(timeout=SESSION_MS)
    expect(page.locator(".jp-DirListing-item", has_text="ps1.html")).to_be_visible()
    person.picture("nbgrader-feedback")
    page_here: list[Path] = list((site.state / "homes" / USER / "ps1").rglob("ps1.html"))
    assert [each.read_text() for each in page_here] == ["<p>Well done.</p>"]
