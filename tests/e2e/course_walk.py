"""A course in the browser: create, release, submit, grade, correct, and release feedback.

A teacher grades the answers by hand with the keyboard, and a student asks for a regrade.

One submission is late, one cheats, and one never terminates.
"""

from __future__ import annotations

import io
import json
import re
import sqlite3
import zipfile
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from playwright.sync_api import Browser, FilePayload, Page, expect

from ..courses.notebook_samples import assignment, with_essay
from .axe import OF_COLOURS
from .browser import SESSION_MS, Person, another_page
from .page_checks import looks, watched, well_formed
from .support import Installation

PATIENCE_MS = 90_000
"""Time-out for grading the class."""
ROSTER = """\
student,name,section
student1,Ada,evening
student2,Ben,day
cleo,Cleo,evening
dora,Dora,evening
"""
ANSWER = "def answer():\n    return 42"
DOUBLE = "def double(x):\n    return 2 * x"
FLOAT = "def double(x):\n    return 2.0 * x"
ESSAY = "Because of the *book*.<script>document.title = 'stolen'</script>"
CHEAT = """\
class Anything(int):
    def __eq__(self, other):
        return True
    __hash__ = int.__hash__

def answer():
    return Anything(1)"""
ENDLESS = "def answer():\n    import time\n    time.sleep(3600)"
"""It waits and does not compute: an endless loop would take the CPU from all that is tested."""
STRICT = "isinstance(double(3), int) and double(3) == 6"
FAIR = "double(3) == 6"


def teachers(fair: bool = False) -> bytes:
    hidden = FAIR if fair else STRICT
    return with_essay(
        assignment(
            ("answer", "def answer():", "return 42", "answer() > 0", "answer() == 42"),
            ("double", "def double(x):", "return 2 * x", "double(1) == 2", hidden),
        )
    )


def solved(hand_out: bytes, **solutions: str) -> FilePayload:
    """The notebook of a hand-out with a student's solutions."""
    with zipfile.ZipFile(io.BytesIO(hand_out)) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".ipynb"))
        notebook = json.loads(archive.read(name))
    for cell in notebook["cells"]:
        cell["source"] = solutions.get(cell["metadata"]["nbgrader"]["grade_id"], cell["source"])
    content = json.dumps(notebook).encode()
    return {"name": "ps1.ipynb", "mimeType": "application/json", "buffer": content}


def file(name: str, content: bytes) -> FilePayload:
    return {"name": name, "mimeType": "application/octet-stream", "buffer": content}


def hand_out_of(page: Page) -> bytes:
    with page.expect_download() as loading:
        page.click("#hand-out")
    return Path(loading.value.path()).read_bytes()


def course_is_made(admin: Person) -> None:
    page = admin.page
    page.goto(admin.site.service + "/courses")
    page.fill("#new-name", "ml1")
    page.fill("#new-teachers", "teacher")
    page.set_input_files("#roster", [file("roster.csv", ROSTER.encode())])
    with another_page(page):
        page.click("#preview-course")
    expect(page.locator(".preview")).to_contain_text("student1")
    with another_page(page):
        page.click("#create-course")
    expect(page.get_by_role("heading", name="ml1")).to_be_visible()


def assignment_is_released(teacher: Person) -> None:
    """Due in an hour; the section of the evening has two days more."""
    page = teacher.page
    page.goto(teacher.site.service + "/courses")
    page.click("#course-ml1")
    page.click("#to-release")
    page.fill("#release-assignment", "ps1")
    page.set_input_files("#files", [file("ps1.ipynb", teachers())])
    due = datetime.now(UTC) + timedelta(hours=1)
    page.fill("#release-due", due.strftime("%Y-%m-%dT%H:%M"))
    page.fill("#release-zone", "UTC")
    page.fill("#release-late_span_1", "24")
    page.fill("#release-late_part_1", "10")
    page.fill("#release-time", "15s")
    with another_page(page):
        page.click("#release")
    expect(page.locator("#released")).to_contain_text("Released ps1, version 1")
    teacher.picture("course-released")
    page.goto(teacher.site.service + "/course/ml1/teach")
    page.select_option("#extend-whom", "section:evening")
    page.fill("#extend-span", "48")
    with another_page(page):
        page.click("#extend")
    expect(page.locator("#extensions-region")).to_contain_text("evening")


def two_hours_pass(site: Installation) -> None:
    with closing(sqlite3.connect(site.state / "carrel.db")) as database, database:
        database.execute("update assignments set due = due - 7200 where course = 'ml1'")


def at_the_assignment(student: Person) -> None:
    student.desk()
    with another_page(student.page):
        student.page.locator("#assignment-ml1-ps1").click()


def is_handed_in(student: Person, work: FilePayload) -> None:
    page = student.page
    page.set_input_files("#submit-files", [work])
    with another_page(page):
        page.click("#submit")
    expect(page.locator("#receipt-1")).to_contain_text("SHA-256")


def official_check_starts(teacher: Person, student: Person, work: FilePayload) -> None:
    rule = "/courses/ml1/assignments/ps1/official-checks/rule"
    allowed = teacher.site.api("PUT", rule, user="teacher", json={"per_day": 1})
    assert allowed.status_code == 200, allowed.text
    page = student.page
    page.reload()
    page.set_input_files("#official-files", [work])
    with another_page(page):
        page.click("#official-check")
    expect(page.locator("#official-left")).to_contain_text("Left today: 0 of 1.")


def the_minute_of_the_check_passes(site: Installation) -> None:
    mine = site.api("GET", "/courses/ml1/assignments/ps1/official-checks", user="student1")
    (check,) = mine.json()["checks"]
    site.wait_for(check["id"], "succeeded", user="teacher")
    # The end is stored when it is first read.
    site.api("GET", "/courses/ml1/assignments/ps1/official-checks", user="student1")
    with closing(sqlite3.connect(site.state / "carrel.db")) as database, database:
        shift = "set asked_at = asked_at - 60, ended_at = ended_at - 60"
        database.execute(f"update official_checks {shift}")


def the_verdict_comes_without_a_hidden_test(student: Person) -> None:
    """The page updates without reloading."""
    page = student.page
    expect(page.locator("#assignment-work")).to_contain_text("Not all tests pass: ")
    assert "isinstance" not in page.content()
    student.picture("course-officially-checked")


def row(page: Page, student: str) -> str:
    found = page.locator("#grades-region tbody tr").filter(has_text=student)
    return found.inner_text()


def graded(teacher: Person, question: str = "") -> None:
    starts_grading(teacher, question)
    ends_grading(teacher)


def starts_grading(teacher: Person, question: str = "") -> None:
    page = teacher.page
    page.goto(teacher.site.service + "/course/ml1/grading/ps1")
    page.select_option("#question", question)
    with another_page(page):
        page.click("#grade")


def ends_grading(teacher: Person) -> None:
    """The page updates without reloading."""
    ended = expect(teacher.page.locator("#progress"))
    ended.to_contain_text("4 of 4 graded, succeeded", timeout=PATIENCE_MS)


def from_the_roster_to_the_feedback(site: Installation, browser: Browser) -> None:
    for name in ("cleo", "dora"):
        done = site.cli("user", "add", name, "--state", str(site.state))
        site.passwords[name] = done.stdout.split()[-1]
    people = {
        name: Person.sits_down(browser, site, name)
        for name in ("admin", "teacher", "student1", "student2", "cleo", "dora")
    }
    admin, teacher, student1, student2, cleo, dora = people.values()
    for each in people.values():
        each.sign_in()
    course_is_made(admin)
    assignment_is_released(teacher)

    at_the_assignment(student1)
    page = student1.page
    hand_out = hand_out_of(page)
    assert b"42" not in hand_out
    page.set_input_files("#check-files", [solved(hand_out, answer=ANSWER)])
    page.click("#check")
    checked = page.locator("#assignment-work")
    expect(checked.get_by_role("row").filter(has_text="test-answer")).to_contain_text("passed")
    expect(checked.get_by_role("row").filter(has_text="test-double")).not_to_contain_text("passed")
    student1.picture("course-checked")
    official_check_starts(teacher, student1, solved(hand_out, answer=ANSWER))
    is_handed_in(student1, solved(hand_out, answer=ANSWER, double=DOUBLE, essay=ESSAY))
    expect(page.locator("#receipt-1")).to_contain_text("On time")

    two_hours_pass(site)
    for student, work in (
        (student2, solved(hand_out, answer=ANSWER, double=FLOAT, essay=ESSAY)),
        (cleo, solved(hand_out, answer=CHEAT, double=DOUBLE)),
        (dora, solved(hand_out, answer=ENDLESS, double=DOUBLE)),
    ):
        at_the_assignment(student)
        is_handed_in(student, work)
    expect(student2.page.locator("#receipt-1")).to_contain_text("which costs 10 % of the points")
    the_class_is_graded_and_corrected(teacher)
    the_minute_of_the_check_passes(site)
    answers_are_graded_with_the_keyboard(teacher)
    the_verdict_comes_without_a_hidden_test(student1)
    feedback_is_released(teacher)
    each_sees_the_own_feedback(student1, student2)
    points_are_asked_about_and_changed(student1, teacher)
    assert [each.complaints for each in people.values()] == [[]] * len(people)


def the_class_is_graded_and_corrected(teacher: Person) -> None:
    page = teacher.page
    starts_grading(teacher)
    # Meanwhile the endless one runs to its limit.
    expect(page.locator("#progress")).to_contain_text("3 of 4 graded, running")
    ends_grading(teacher)
    teacher.picture("course-graded")
    assert "4 of 7" in row(page, "student1")
    assert "1.8 of 7" in row(page, "student2")
    assert "2 of 7" in row(page, "cleo")
    assert "time" in row(page, "dora")

    # The teacher finds a test too strict: release it again, and grade one question for all.
    page.goto(teacher.site.service + "/course/ml1/release?assignment=ps1")
    page.set_input_files("#files", [file("ps1.ipynb", teachers(fair=True))])
    with another_page(page):
        page.click("#release")
    expect(page.locator("#released")).to_contain_text("version 2")
    graded(teacher, "test-double")
    assert "3.6 of 7" in row(page, "student2")
    assert "4 of 7" in row(page, "student1")


def fine(person: Person, name: str) -> None:
    """The page is accessible in both themes, on a phone and a desktop."""
    page = person.page
    wrong = looks(page, name, "dark") + looks(page, name, "light", OF_COLOURS) + well_formed(page)
    assert wrong == []


def answers_are_graded_with_the_keyboard(teacher: Person) -> None:
    page, keys = teacher.page, teacher.page.keyboard
    fine(teacher, "course-grading")
    with another_page(page):
        page.click("#manual")
    expect(page.get_by_role("heading", level=1)).to_contain_text("student1 (Ada): ps1 by hand")
    expect(page.locator("#left")).to_contain_text("2 cells of 2 students need a person")
    notebook = page.frame_locator("#graded-notebook")
    expect(notebook.locator("[id='cell-id=essay']")).to_contain_text("Because of the book.")
    expect(page.get_by_label("Points of 3")).to_be_focused()
    fine(teacher, "course-manual")

    page.get_by_label("Points of 3").focus()
    keys.type("2.5")
    keys.press("n")
    expect(page.locator("#unsaved")).to_be_visible()
    keys.press("Tab")
    keys.type("Say <b>which</b>.")
    with another_page(page):
        keys.press("Control+Enter")
    expect(page.locator("#saved")).to_contain_text("essay was saved")
    expect(page.get_by_role("heading", level=1)).to_contain_text("student2")
    keys.type("4")
    with another_page(page):
        keys.press("Enter")
    expect(page.locator("#problem")).to_contain_text("essay has 0 to 3 points, not 4.")
    expect(page.get_by_label("Points of 3")).to_have_value("4")
    keys.type("1")
    with another_page(page):
        keys.press("Enter")
    expect(page.locator("#saved")).to_contain_text("No cell needs a person any more.")
    with another_page(page):
        keys.press("p")
    expect(page.get_by_role("heading", level=1)).to_contain_text("student1")
    expect(page.get_by_label("Points of 3")).to_have_value("2.5")
    page.check("#blind")
    with another_page(page):
        page.click("#view")
    expect(page.get_by_role("heading", level=1)).to_contain_text(re.compile(r"^Student \d{5}: ps1"))
    assert page.title() != "stolen"


def feedback_is_released(teacher: Person) -> None:
    page = teacher.page
    page.goto(teacher.site.service + "/course/ml1/grading/ps1")
    assert "6.5 of 7" in row(page, "student1")
    assert "4.5 of 7" in row(page, "student2")
    page.click("#feedback")
    expect(page.locator("#feedback-told")).to_contain_text("have feedback", timeout=SESSION_MS)
    teacher.picture("course-feedback")


def points_are_asked_about_and_changed(student: Person, teacher: Person) -> None:
    at_the_assignment(student)
    page = student.page
    expect(page.locator("#standing")).to_have_text("graded")
    expect(page.locator("#points-region")).to_contain_text("Say <b>which</b>.")
    with another_page(page):
        page.click("#regrades")
    page.select_option("#about", "ps1/essay")
    page.fill("#text", "I did say which: the *book*.")
    with another_page(page):
        page.click("#ask")
    fine(student, "course-own-regrades")

    page = teacher.page
    page.goto(teacher.site.service + "/course/ml1/regrades")
    fine(teacher, "course-regrades")
    with another_page(page):
        page.get_by_role("link", name="student1", exact=True).click()
    with another_page(page):
        page.click("#manual")
    expect(page.get_by_label("Points of 3")).to_be_focused()
    page.keyboard.type("3")
    with another_page(page):
        page.keyboard.press("Enter")
    page.goto(teacher.site.service + "/course/ml1/regrades/1")
    page.get_by_label("Answer", exact=True).fill("True: 3 points.")
    with another_page(page):
        page.click("#close-1")
    expect(page.locator("main")).to_contain_text("Closed by teacher")
    fine(teacher, "course-regrade")
    page.goto(teacher.site.service + "/course/ml1/gradebook")
    expect(page.get_by_role("row").filter(has_text="student1")).to_contain_text("7")
    fine(teacher, "course-gradebook")

    student.page.reload()
    expect(student.page.locator("main")).to_contain_text("True: 3 points.")


def each_sees_the_own_feedback(student1: Person, student2: Person) -> None:
    at_the_assignment(student1)
    page = student1.page
    expect(page.locator("#score")).to_contain_text("6.5 of 7 points")
    own = page.locator("#feedback-1").get_attribute("href")
    with watched(page, student1.site.url) as watch:
        page.click("#feedback-1")
        expect(page.frame_locator("iframe").locator("body")).to_contain_text("def answer")
        student1.picture("course-own-feedback")  # which waits for fonts
    assert watch.complaints == []
    at_the_assignment(student2)
    expect(student2.page.locator("#score")).to_contain_text("4.5 of 7 points")
    refused = student2.page.goto(student2.site.url + str(own))
    assert refused is not None
    assert refused.status == 404
