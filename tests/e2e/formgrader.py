"""Steps in nbgrader's formgrader, in a teacher's session, on the gradebook that Carrel wrote."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, expect

from ..courses.notebook_samples import SOURCE, with_essay
from .browser import SESSION_MS, Person
from .classes import ask, handed, the_demo_is_ready
from .support import Installation

PLACE = "/courses/cs101/assignments/ps1"
RIGHT = """def answer():
    return 42
from IPython.display import HTML, display
display(HTML("<script>window.stolen = 1</script><img src=x onerror='window.stolen = 2'>"))
"""


@pytest.fixture
def graded(site: Installation) -> Installation:
    """student1's answer to ps1, as far as tests can grade it."""
    the_demo_is_ready(site)
    ask(site, "POST", f"{PLACE}/release", "teacher", files=handed(with_essay(SOURCE)))
    notebook = json.loads(with_essay(SOURCE))
    notebook["cells"][0]["source"] = RIGHT
    notebook["cells"][-1]["source"] = "Because <script>window.stolen = 3</script> it *is*."
    sent = handed(json.dumps(notebook).encode())
    ask(site, "POST", f"{PLACE}/submissions", "student1", files=sent)
    site.cli("course", "grade", "ps1", "--course", "cs101", "--watch", user="teacher")
    return site


@pytest.fixture
def teacher(browser: Browser, site: Installation) -> Person:
    made = Person.sits_down(browser, site, "teacher")
    made.sign_in()
    return made


def row(site: Installation) -> dict[str, str]:
    """student1's line of the table."""
    table = site.cli("course", "grades", "ps1", "--course", "cs101", "--csv", user="teacher")
    rows = csv.DictReader(io.StringIO(table.stdout))
    return next(row for row in rows if row["student"] == "student1")


def essay(site: Installation) -> dict[str, Any]:
    (grade,) = ask(site, "GET", f"{PLACE}/grading", "teacher")["grades"]
    return next(dict(cell) for cell in grade["cells"] if cell["cell"] == "essay")


def give(field: Locator, text: str) -> None:
    """Type it and go on. Once it is saved the page puts all fields of the cell to what is in the
    gradebook, so that the next one is not typed before."""
    field.fill(text)
    field.blur()
    expect(field.page.locator(".save-icon.glyphicon-refresh")).to_have_count(0)


def give_points_and_check_that_they_count(graded: Installation, teacher: Person) -> None:
    site, page = graded, teacher.page
    assert (row(site)["score"], row(site)["ps1/essay"]) == ("2.0", "")
    assert essay(site)["word"] == "needs a person"

    site.start_session("teacher", devices=0)
    page.goto(f"{site.service}/wait/-")
    page.wait_for_url("**/user/teacher/lab**", timeout=SESSION_MS)
    page.get_by_role("menuitem", name="Nbgrader").click(timeout=SESSION_MS)
    page.get_by_role("menuitem", name="Formgrader", exact=True).click()
    inside = page.frame_locator("iframe[src*=formgrader]")
    expect(inside.get_by_role("link", name="ps1").first).to_be_visible(timeout=SESSION_MS)
    teacher.picture("formgrader-assignments")

    page.goto(f"{site.url}/user/teacher/formgrader/gradebook/ps1/ps1")
    page.get_by_role("link", name="Submission #1").click()
    points = page.locator("input#essay")
    expect(points).to_be_visible()
    assert page.evaluate("window.stolen") is None
    extra, comment = page.locator("#essay_extra_credit"), page.locator("#essay-comment")
    for each in (extra, comment):  # What is in the gradebook comes after the page, in its place.
        expect(each).to_have_attribute("placeholder", re.compile("."))
    give(points, "2.5")
    give(extra, "0.5")
    give(comment, "Say it shorter.")
    teacher.picture("formgrader-by-hand")

    assert (row(site)["score"], row(site)["ps1/essay"]) == ("5.0", "3.0")
    assert (essay(site)["word"], essay(site)["review"]) == ("by hand", False)
    words = ("course", "grade", "ps1", "--course", "cs101", "--question", "test-answer", "--watch")
    site.cli(*words, user="teacher")
    assert (row(site)["score"], essay(site)["review"]) == ("5.0", False)

    site.cli("course", "feedback", "ps1", "--course", "cs101", "--release", user="teacher")
    target = site.state / "pages"
    words = ("course", "feedback", "ps1", "--course", "cs101", "--to", str(target))
    site.cli(*words, user="student1")
    given = (target / "ps1.html").read_text()
    assert "Score: 5.0 / 5.0" in given
    assert "Say it shorter." in given
    assert not (site.state / "homes" / "student1" / "courses").exists()
