"""Files of the demo in homes: a notebook for all users, the course for its teacher."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest

from carrel.courses.releases.student_version import prepare
from carrel.courses.sample import COURSE_FOLDER, FIRST_UNIT, first_unit, unit_names
from carrel.courses.services import CourseServices
from carrel.hub import demo
from carrel.hub.accounts.demo import DEMO_GROUP
from carrel.hub.records.identity import Identity
from carrel.hub.runtime.context import Context
from carrel.spawners.fake import FakeBackend

from ..stores import new_courses, new_store
from .doubles import Clock, FakeHub, build


@pytest.fixture
def context(tmp_path: Path) -> Context:
    made = build(new_store(), FakeBackend(), FakeHub(), Clock(), tmp_path)
    # Without the group of other tests.
    return replace(made, store=new_store())


@pytest.fixture
def desk(context: Context) -> CourseServices:
    return new_courses(context)


def test_the_teacher_gets_the_course_and_students_do_not(
    context: Context, desk: CourseServices
) -> None:
    demo.prepare_demo(desk, threading.Event())
    students, teacher = context.files.home("student1"), context.files.home("teacher")
    assert [each.name for each in students.iterdir()] == ["digits.ipynb"]
    course = teacher / COURSE_FOLDER
    assert (teacher / "digits.ipynb").is_file()
    assert "## Release" in (course / "TEACHING.md").read_text()
    for unit in unit_names():
        nbformat.validate(nbformat.read(course / "source" / unit / f"{unit}.ipynb", as_version=4))
    assert context.store.group(DEMO_GROUP).max_devices == 4


def test_later_starts_change_no_files(context: Context, desk: CourseServices) -> None:
    demo.prepare_demo(desk, threading.Event())
    course = context.files.home("teacher") / COURSE_FOLDER
    (course / "TEACHING.md").unlink()
    demo.prepare_demo(desk, threading.Event())
    assert not (course / "TEACHING.md").exists()


def test_students_find_the_first_unit_on_their_desk(desk: CourseServices) -> None:
    demo.prepare_demo(desk, threading.Event())
    student = Identity(name="student1", groups=(DEMO_GROUP,))
    (unit,) = desk.overview.own_assignments(student)
    assert (unit.course, unit.name) == (DEMO_GROUP, FIRST_UNIT)
    files = desk.assignments.fetch(student, DEMO_GROUP, FIRST_UNIT).files
    assert [file.name for file in files] == [f"{FIRST_UNIT}.ipynb"]


def test_a_withdrawn_unit_stays_withdrawn(desk: CourseServices) -> None:
    demo.prepare_demo(desk, threading.Event())
    desk.assignments.withdraw(Identity(name="teacher"), DEMO_GROUP, FIRST_UNIT)
    demo.prepare_demo(desk, threading.Event())
    assert not desk.access.store.assignment(DEMO_GROUP, FIRST_UNIT).open
    assert desk.access.store.released_version(DEMO_GROUP, FIRST_UNIT).version == 1


def test_the_shipped_student_version_is_that_of_nbgrader() -> None:
    source, released = first_unit()
    assert prepare(FIRST_UNIT, source).files == released
