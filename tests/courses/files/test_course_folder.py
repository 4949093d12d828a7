"""The folder of a course: whose it is, and what lies in it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from carrel.courses.services import CourseServices
from carrel.hub.schemas.courses import ReleaseIn

from ...hub.doubles import ADMIN, TEACHER
from .. import desk_kit
from ..notebook_samples import SOURCE

ROSTER = "student,name,role\nstudent1,Ada,\ngus,Gus,grader\n"


@pytest.fixture
def desk(tmp_path: Path) -> CourseServices:
    kit = desk_kit.made(tmp_path)
    kit.create(students=ROSTER)
    return replace(kit.desk, folder=tmp_path / "courses")


def test_those_who_grade_get_it_made_and_nobody_else_does(
    desk: CourseServices, tmp_path: Path
) -> None:
    for person in ("student1", "admin", "stranger"):
        assert desk.graded_by(person) == ()
    assert not (tmp_path / "courses").exists()
    for person in ("teacher", "gus"):
        assert desk.graded_by(person) == ("cs101",)
    folder = tmp_path / "courses" / "cs101"
    assert sorted(each.name for each in folder.iterdir()) == [
        *("data", "nbgrader_config.py", "source"),
    ]
    assert 'course_id = "cs101"' in (folder / "nbgrader_config.py").read_text()


def test_what_a_teacher_wrote_stays(desk: CourseServices, tmp_path: Path) -> None:
    desk.graded_by("teacher")
    config = tmp_path / "courses" / "cs101" / "nbgrader_config.py"
    config.write_text("# mine\n")
    desk.graded_by("teacher")
    assert config.read_text() == "# mine\n"


def test_a_grader_who_has_left_sees_it_no_more(desk: CourseServices) -> None:
    desk.roster(ADMIN, "cs101", "student\nstudent1\n")
    assert desk.graded_by("gus") == ()


def test_formgrader_finds_what_was_released_there(desk: CourseServices, tmp_path: Path) -> None:
    notebook = desk_kit.files({"ps1.ipynb": SOURCE})
    desk.release(TEACHER, "cs101", "ps1", ReleaseIn(files=notebook))
    desk.graded_by("teacher")
    written = tmp_path / "courses" / "cs101" / "source" / "ps1" / "ps1.ipynb"
    assert written.read_bytes() == SOURCE
    written.write_text("mine")
    desk.graded_by("teacher")
    assert written.read_text() == "mine"


def test_in_what_teachers_put_there_nothing_is_followed(
    desk: CourseServices, tmp_path: Path
) -> None:
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "courses" / "cs101"
    elsewhere.mkdir(mode=0o700)
    folder.mkdir(parents=True)
    for name in ("data", "source", "nbgrader_config.py"):
        (folder / name).symlink_to(elsewhere / "missing" if "." in name else elsewhere)
    desk.release(TEACHER, "cs101", "ps1", ReleaseIn(files=desk_kit.files({"ps1.ipynb": SOURCE})))
    desk.graded_by("teacher")
    assert elsewhere.stat().st_mode & 0o777 == 0o700
    assert list(elsewhere.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_it_becomes_theirs_once(desk: CourseServices, tmp_path: Path) -> None:
    folder = tmp_path / "courses" / "cs101"
    desk.graded_by("teacher")
    (folder / "out").symlink_to(tmp_path)
    in_containers = replace(desk, owner=(1234, 1234))
    in_containers.graded_by("teacher")
    assert {each.lstat().st_uid for each in (folder, *folder.iterdir())} == {1234}
    assert tmp_path.stat().st_uid == 0
    (folder / "by-hand").touch()
    in_containers.graded_by("teacher")
    assert (folder / "by-hand").stat().st_uid == 0
