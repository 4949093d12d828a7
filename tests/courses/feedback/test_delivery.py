"""Feedback: released by graders, visible to its student only."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from carrel.hub.errors import Conflict, Forbidden, InvalidInput, NotFound
from carrel.hub.schemas.courses import BundleIn

from ...hub.doubles import STRANGER, STUDENT1, STUDENT2, TEACHER
from ..course_site import GRADER, CourseSite, build_site, files

ROSTER = "student,name,role\nstudent1,Ada,\nstudent2,Ben,\ngus,,grader\n"
PAGE = BundleIn(files=files({"ps1.html": b"<p>Well done.</p>"}))


@pytest.fixture
def site(tmp_path: Path) -> CourseSite:
    site = build_site(tmp_path)
    site.create(students=ROSTER)
    site.release()
    return site


def test_feedback_is_visible_to_its_student_and_to_graders_only(site: CourseSite) -> None:
    sent = site.submit("{}")
    assert site.services.delivery.files(STUDENT1, sent.id) == []
    for text in (b"<p>First.</p>", b"<p>Well done.</p>"):
        site.services.delivery.deliver_files(
            GRADER, sent.id, BundleIn(files=files({"ps1.html": text}))
        )
    for who in (STUDENT1, TEACHER, GRADER):
        (page,) = site.services.delivery.files(who, sent.id)
        assert (page.name, base64.b64decode(page.content)) == ("ps1.html", b"<p>Well done.</p>")
    for who in (STUDENT2, STRANGER):
        with pytest.raises(NotFound):
            site.services.delivery.files(who, sent.id)
    assert site.lines()[-1] == ("gus", "feedback release", "cs101/ps1")


def test_feedback_of_students_and_without_files_is_refused(site: CourseSite) -> None:
    sent = site.submit("{}")
    with pytest.raises(Forbidden):
        site.services.delivery.deliver_files(STUDENT1, sent.id, PAGE)
    for nothing in (BundleIn(), BundleIn(files=files({"../ps1.html": b"x"}))):
        with pytest.raises(InvalidInput):
            site.services.delivery.deliver_files(TEACHER, sent.id, nothing)
    site.services.administration.archive(TEACHER, "cs101")
    with pytest.raises(Conflict):
        site.services.delivery.deliver_files(TEACHER, sent.id, PAGE)
    assert site.services.delivery.files(STUDENT1, sent.id) == []
