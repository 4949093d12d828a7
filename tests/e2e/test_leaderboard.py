"""A teacher opens a leaderboard, thirty students submit weights, and each gets a verdict."""

from __future__ import annotations

import base64
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FilePayload, expect

from .. import torch_packages
from ..courses.leaderboards.weights_samples import PERFECT, TEACHERS, a_pickle, linear, safetensors
from ..courses.notebook_samples import SOURCE
from .browser import Person, another_page
from .course_walk import file, fine
from .support import Installation

pytestmark = [pytest.mark.browser, pytest.mark.slow]

STUDENTS = 30
EVALUATED_MS = 300_000
BOARD = "/course/ml1/assignment/ps4/leaderboard"


def taught(site: Installation) -> list[str]:
    """Create a course with an assignment and thirty students; return their names."""
    more = [f"pupil{number:02}" for number in range(3, STUDENTS + 1)]
    names = ["student1", "student2", *more]
    roster = "student\n" + "\n".join(names)
    body = {"name": "ml1", "teachers": ["teacher"], "students": roster}
    assert site.api("POST", "/courses", user="admin", json=body).status_code == 201
    remaining = len(more)
    while remaining:
        made = site.api("POST", "/courses/ml1/accounts", user="admin").json()
        site.passwords |= {each["name"]: each["password"] for each in made["created"]}
        assert made["remaining"] < remaining
        remaining = made["remaining"]
    content = base64.b64encode(SOURCE).decode()
    release = {"files": [{"name": "ps4.ipynb", "content": content}]}
    path = "/courses/ml1/assignments/ps4/release"
    assert site.api("POST", path, user="teacher", json=release).status_code == 200
    return names


def weights(content: bytes) -> list[FilePayload]:
    return [file("weights.safetensors", content)]


def test_thirty_students_and_a_verdict_for_each(site: Installation, browser: Browser) -> None:
    torch, _ = torch_packages.load()
    names = taught(site)
    teacher = Person.sits_down(browser, site, "teacher")
    teacher.sign_in()
    page = teacher.page
    page.goto(site.service + "/course/ml1/release?assignment=ps4")
    with another_page(page):
        page.click("#to-leaderboard")
    # PyTorch of the tests has a folder of its own.
    place = f"import sys\nsys.path.append({str(Path(torch.__file__).parents[1])!r})\n"
    page.set_input_files("#rule-files", [file("leaderboard.py", place.encode() + TEACHERS)])
    with another_page(page):
        page.click("#open-leaderboard")
    expect(page.locator("#entries-region")).to_have_count(0)

    bad = {"student2": a_pickle(), names[2]: safetensors({"weight": ((4,), PERFECT)})}
    for number, name in enumerate(names[2:], start=3):
        content = bad.get(name, linear(1.0, number / 10, number / 20, 1.0))
        text = base64.b64encode(content).decode()
        body = {"file": {"name": "weights.safetensors", "content": text}}
        path = "/courses/ml1/assignments/ps4/leaderboard/submissions"
        sent = site.api("POST", path, user=name, json=body)
        assert sent.status_code == 200, sent.text
    students = [Person.sits_down(browser, site, name) for name in names[:2]]
    for each, content in zip(students, (linear(*PERFECT), bad["student2"]), strict=True):
        each.sign_in()
        each.page.goto(site.service + "/course/ml1/assignment/ps4")
        with another_page(each.page):
            each.page.click("#to-leaderboard")
        each.page.set_input_files("#weights", weights(content))
        with another_page(each.page):
            each.page.click("#submit-weights")
    refused = students[1].page.locator("#entries tbody tr")
    expect(refused).to_contain_text("The file is a pickle")

    # The page fills without reloading.
    rows = page.locator("#entries tbody tr")
    expect(rows).to_have_count(STUDENTS, timeout=EVALUATED_MS)
    scored = page.locator("#entries .mark-good")
    expect(scored).to_have_count(STUDENTS - len(bad), timeout=EVALUATED_MS)
    expect(rows.filter(has_text="student2")).to_contain_text("The file is a pickle")
    shape = "weight of the weights has the shape (4,). The architecture has (2, 2)."
    expect(rows.filter(has_text=names[2])).to_contain_text(shape)
    table = page.locator("#leaderboard-region tbody tr")
    expect(table).to_have_count(STUDENTS - len(bad))
    expect(table.first).to_contain_text("student1")
    expect(table.first).to_contain_text("1.0000")
    fine(teacher, "leaderboard-teacher")

    own = students[0].page
    expect(own.locator("#own-row")).to_contain_text("1.0000", timeout=EVALUATED_MS)
    assert "pupil" not in own.content()
    fine(students[0], "leaderboard-student")
    runs = site.api("GET", "/requests?label=leaderboard=yes", user="teacher").json()["requests"]
    for later, earlier in pairwise(runs):  # newest first
        assert later["submitted_at"] >= earlier["ended_at"]
    assert len(runs) < STUDENTS / 2
    assert [each.complaints for each in (teacher, *students)] == [[], [], []]
