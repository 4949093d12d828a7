"""Courses over HTTP."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from carrel.hub.records.identity import Identity

from ....courses.notebook_samples import SOURCE
from ...doubles import ADMIN, STUDENT1, TEACHER
from ..course_samples import COURSE, PS1, course, files
from ..fakes import API, PREFIX
from ..page_checks import check_page
from ..site import Site, site

__all__ = ["course", "site"]


def ask(site: Site, verb: str, path: str, body: dict[str, Any] | None, who: Identity) -> int:
    return int(site.api(who).request(verb, path, json=body).status_code)


def test_from_the_roster_to_the_receipt(course: Site) -> None:
    student, teacher = course.api(STUDENT1), course.api(TEACHER)
    (mine,) = student.get(f"{API}/courses").json()["courses"]
    assert (mine["name"], mine["role"], mine["image"]) == ("cs101", "student", "local")
    given = student.get(f"{PS1}/hand-out").json()
    assert given["version"] == 1
    assert b"BEGIN SOLUTION" not in base64.b64decode(given["files"][0]["content"])
    sent = {"files": files(ps1_ipynb=SOURCE), "version": 1}
    receipt = student.post(f"{PS1}/submissions", json=sent).json()
    assert (receipt["standing"], receipt["at"]) == ("on time", course.clock.now)
    assert student.post(f"{PS1}/submissions", json=sent).json() == receipt
    (seen,) = teacher.get(f"{PS1}/submissions", params={"person": "student1"}).json()["receipts"]
    assert seen == receipt
    content = teacher.get(f"{API}/submissions/{receipt['id']}").json()["files"][0]["content"]
    assert base64.b64decode(content) == SOURCE
    (shown,) = student.get(f"{COURSE}/assignments").json()["assignments"]
    assert (shown["state"], shown["fetched_version"]) == ("submitted", 1)
    (counted,) = teacher.get(f"{COURSE}/assignments").json()["assignments"]
    assert counted["submitted"] == 1


def test_extensions_and_counting_submissions(course: Site) -> None:
    extension = {"person": "student1", "seconds": 3600, "why": "ill"}
    assert ask(course, "POST", f"{PS1}/extensions", extension, TEACHER) == 200
    outage = {"starts_at": 1.0, "ends_at": 2.0}
    assert ask(course, "POST", f"{API}/outages", outage, TEACHER) == 403
    assert ask(course, "POST", f"{API}/outages", outage, ADMIN) == 201
    assert len(course.api(STUDENT1).get(f"{API}/outages").json()["outages"]) == 1
    sent = {"files": files(ps1_ipynb=SOURCE)}
    receipt = course.api(STUDENT1).post(f"{PS1}/submissions", json=sent).json()
    for verb in ("PUT", "DELETE"):
        counts = f"{API}/submissions/{receipt['id']}/counts"
        assert ask(course, verb, counts, None, STUDENT1) == 403
        assert ask(course, verb, counts, None, TEACHER) == 200


def test_extensions_are_listed_and_revoked(course: Site) -> None:
    for seconds in (3600, 60):
        extension = {"section": "blue", "seconds": seconds, "why": "ill"}
        assert ask(course, "POST", f"{PS1}/extensions", extension, TEACHER) == 200
    teacher, given = course.api(TEACHER), f"{PS1}/extensions"
    found = teacher.get(given).json()["extensions"]
    assert [(each["section"], each["seconds"], each["why"]) for each in found] == [
        ("blue", 3600, "ill"),
        ("blue", 60, "ill"),
    ]
    for verb in ("GET", "DELETE"):
        assert ask(course, verb, f"{given}?section=blue", None, STUDENT1) == 403
    assert ask(course, "DELETE", given, None, TEACHER) == 400
    assert ask(course, "DELETE", f"{given}?person=student1", None, TEACHER) == 404
    said = teacher.delete(given, params={"section": "blue"}).json()
    assert said["sentences"] == ["Section blue had 1 h 1 min more for ps1: taken back."]
    assert teacher.get(given).json()["extensions"] == []


def test_a_course_has_a_preview_before_it_is_created(site: Site) -> None:
    body = {"name": "cs101", "teachers": ["grce"], "students": "student\nstudent1\nzoe\n"}
    assert ask(site, "POST", f"{API}/courses?dry_run=true", body, TEACHER) == 403
    shown = site.api().post(f"{API}/courses", json=body, params={"dry_run": "true"})
    assert shown.status_code == 200
    strangers = "JupyterHub does not know grce yet: is the name right?"
    staying = shown.json()["sentences"][3]
    assert staying.startswith("In the group already, and not on the roster: student2. They stay")
    missing = "2 users have no account yet: student1, zoe."
    assert shown.json() == {
        "sentences": [
            "cs101 becomes the group of a course, with at most 4 devices.",
            *("grce teaches it.", strangers, staying, missing),
            *("zoe is new.", "student1 was in the group already."),
        ],
        "saved": False,
        "changes": True,
    }
    assert site.api().get(f"{API}/courses").json()["courses"] == []
    assert site.api().post(f"{API}/courses", json=body).json()["notes"] == [
        *(strangers, staying, missing),
    ]


def test_a_roster_is_shown_before_it_is_applied(course: Site) -> None:
    body = {"students": "student\nstudent1\n"}
    shown = course.api(TEACHER).put(f"{COURSE}/roster", json=body, params={"dry_run": "true"})
    assert shown.json()["sentences"] == [
        "student2 leaves; the submissions are kept.",
        "student1: section blue → none.",
        "1 user has no account yet: student1.",
    ]
    assert ask(course, "PUT", f"{COURSE}/roster", body, STUDENT1) == 403
    assert ask(course, "PUT", f"{COURSE}/roster", body, TEACHER) == 200
    found = course.api(TEACHER).get(f"{COURSE}/members").json()["members"]
    assert [member["left_at"] is None for member in found] == [True, False]


def test_clones_and_archives(course: Site) -> None:
    assert ask(course, "POST", f"{COURSE}/clone", {"name": "cs102"}, TEACHER) == 403
    assert ask(course, "POST", f"{COURSE}/clone", {"name": "cs102"}, ADMIN) == 201
    assert ask(course, "PUT", f"{COURSE}/archive", None, TEACHER) == 200
    sent = {"files": files(ps1_ipynb=SOURCE)}
    assert ask(course, "POST", f"{PS1}/submissions", sent, STUDENT1) == 409
    assert ask(course, "DELETE", f"{COURSE}/archive", None, TEACHER) == 200
    assert ask(course, "POST", f"{PS1}/submissions", sent, STUDENT1) == 200


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({}, 400, "files"),
        ({"files": [{"name": "../x", "content": ""}]}, 400, "files"),
        ({"files": [{"name": "x", "content": "no base64!"}]}, 400, "files"),
        ({"files": [{"name": "x", "contents": ""}]}, 400, "files.0.content"),
        ({"archive": base64.b64encode(b"no zip").decode()}, 400, "files"),
        ({"files": [{"name": "x", "content": "A" * (44 << 20)}]}, 413, "files"),
    ],
    ids=["nothing", "out", "no base64", "a typo", "no zip", "large"],
)
def test_refused_input_is_not_stored(
    course: Site, body: dict[str, Any], status: int, field: str
) -> None:
    answer = course.api(STUDENT1).post(f"{PS1}/submissions", json=body)
    assert (answer.status_code, answer.json()["field"]) == (status, field)
    assert course.api(TEACHER).get(f"{PS1}/submissions").json()["receipts"] == []


def test_a_gigabyte_is_refused_before_it_is_read(course: Site) -> None:
    answer = course.api(STUDENT1).post(
        f"{PS1}/submissions",
        content=b"",
        headers={"Content-Type": "application/json", "Content-Length": str(1 << 30)},
    )
    assert answer.status_code == 413
    assert "too large" in answer.json()["detail"]


def test_a_change_by_cookie_needs_the_form_token(course: Site) -> None:
    browser = course.world.browser("student1-oauth")
    sent = {"files": files(ps1_ipynb=SOURCE)}
    assert browser.post(f"{PS1}/submissions", json=sent).status_code == 403
    assert course.api(TEACHER).get(f"{PS1}/submissions").json()["receipts"] == []


def test_the_desk_shows_assignments_with_their_receipts(course: Site) -> None:
    ask(course, "POST", f"{PS1}/extensions", {"person": "student1", "seconds": 3600}, TEACHER)
    page = course.page(STUDENT1).get(PREFIX).text
    check_page(page)
    for words in ("My assignments", "ps1", "1 h more", "What comes late does not count."):
        assert words in page
    # The page's script shows it in the reader's zone: 18:00 in Berlin, and an hour more.
    assert '<time datetime="2027-02-01T18:00:00Z" data-show="date">' in page
    sent = {"files": files(other_ipynb=b"x"), "incomplete": True}
    receipt = course.api(STUDENT1).post(f"{PS1}/submissions", json=sent).json()
    page = course.page(STUDENT1).get(PREFIX).text
    check_page(page)
    for words in (receipt["sha256"], "On time; this one is graded.", "Not in it: ps1.ipynb."):
        assert words in page


def test_a_desk_without_assignments_says_when_they_are_listed(site: Site) -> None:
    assert "My assignments" not in site.page(STUDENT1).get(PREFIX).text
    site.api().post(f"{API}/courses", json={"name": "cs101", "students": "student\nstudent1\n"})
    page = site.page(STUDENT1).get(PREFIX).text
    check_page(page)
    assert "No assignment has been released yet." in page
    assert "My assignments" not in site.page(TEACHER).get(PREFIX).text


def test_a_teacher_grades_on_a_page_and_watches(course: Site) -> None:
    address = f"{PREFIX}course/cs101/grading/ps1"
    browser = course.page(TEACHER)
    page = browser.get(address).text
    check_page(page)
    assert "There is no submission that counts." in page
    token = {"csrf": course.world.form_token("teacher-oauth")}
    refused = browser.post(address, data=token)
    assert refused.status_code == 400
    assert "No submission for ps1 counts." in refused.text
    course.api(STUDENT1).post(f"{PS1}/submissions", json={"files": files(ps1_ipynb=SOURCE)})
    assert browser.post(address, data=token).status_code == 303
    for shown in (browser.get(address).text, browser.get(f"{address}/live").text):
        for words in ("0 of 1 graded, queued", "student1", "not graded yet"):
            assert words in shown
    run = browser.get(f"{PS1}/grading").json()["run"]["request"]
    assert browser.get(f"{PREFIX}requests/{run}").status_code == 200
    assert course.page(STUDENT1).get(address).status_code == 403
