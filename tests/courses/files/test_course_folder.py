"""The folder of a course: its owner and its files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from carrel.courses.services import CourseServices
from carrel.hub.schemas.courses import ReleaseIn

from ...hub.doubles import ADMIN, TEACHER
from .. import course_site
from ..notebook_samples import SOURCE

ROSTER = "student,name,role\nstudent1,Ada,\ngus,Gus,grader\n"


@pytest.fixture
def services(tmp_path: Path) -> CourseServices:
    site = course_site.build_site(tmp_path, root=tmp_path / "courses")
    site.create(students=ROSTER)
    return site.services


def test_only_teachers_and_graders_get_the_folder_created(
    services: CourseServices, tmp_path: Path
) -> None:
    for person in ("student1", "admin", "stranger"):
        assert services.folders.prepare_for(person) == ()
    assert not (tmp_path / "courses").exists()
    for person in ("teacher", "gus"):
        assert services.folders.prepare_for(person) == ("cs101",)
    folder = tmp_path / "courses" / "cs101"
    assert sorted(each.name for each in folder.iterdir()) == [
        *("data", "nbgrader_config.py", "source"),
    ]
    assert 'course_id = "cs101"' in (folder / "nbgrader_config.py").read_text()


def test_files_that_a_teacher_wrote_are_kept(services: CourseServices, tmp_path: Path) -> None:
    services.folders.prepare_for("teacher")
    config = tmp_path / "courses" / "cs101" / "nbgrader_config.py"
    config.write_text("# mine\n")
    services.folders.prepare_for("teacher")
    assert config.read_text() == "# mine\n"


def test_a_grader_who_has_left_does_not_get_the_folder(services: CourseServices) -> None:
    services.roster.update(ADMIN, "cs101", "student\nstudent1\n")
    assert services.folders.prepare_for("gus") == ()


def test_formgrader_finds_what_was_released_there(services: CourseServices, tmp_path: Path) -> None:
    notebook = course_site.files({"ps1.ipynb": SOURCE})
    services.assignments.release(TEACHER, "cs101", "ps1", ReleaseIn(files=notebook))
    services.folders.prepare_for("teacher")
    written = tmp_path / "courses" / "cs101" / "source" / "ps1" / "ps1.ipynb"
    assert written.read_bytes() == SOURCE
    written.write_text("mine")
    services.folders.prepare_for("teacher")
    assert written.read_text() == "mine"


def test_links_that_teachers_create_there_are_not_followed(
    services: CourseServices, tmp_path: Path
) -> None:
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "courses" / "cs101"
    elsewhere.mkdir(mode=0o700)
    folder.mkdir(parents=True)
    for name in ("data", "source", "nbgrader_config.py"):
        (folder / name).symlink_to(elsewhere / "missing" if "." in name else elsewhere)
    services.assignments.release(
        TEACHER, "cs101", "ps1", ReleaseIn(files=course_site.files({"ps1.ipynb": SOURCE}))
    )
    services.folders.prepare_for("teacher")
    assert elsewhere.stat().st_mode & 0o777 == 0o700
    assert list(elsewhere.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_folder_changes_its_owner_once(services: CourseServices, tmp_path: Path) -> None:
    folder = tmp_path / "courses" / "cs101"
    services.folders.prepare_for("teacher")
    (folder / "out").symlink_to(tmp_path)
    in_containers = replace(services.folders, owner=(1234, 1234))
    in_containers.prepare_for("teacher")
    assert {each.lstat().st_uid for each in (folder, *folder.iterdir())} == {1234}
    assert tmp_path.stat().st_uid == 0
    (folder / "by-hand").touch()
    in_containers.prepare_for("teacher")
    assert (folder / "by-hand").stat().st_uid == 0
