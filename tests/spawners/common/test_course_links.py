"""Links to the folders of courses in a grader's session."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.extensions.nbgrader import GRADES_NO_COURSE
from carrel.spawners.common.course_links import INSIDE, environment, link_into


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "homes" / "teacher"
    made.mkdir(parents=True)
    return made


def linked(home: Path) -> dict[str, str]:
    return {each.name: str(each.readlink()) for each in (home / "courses").iterdir()}


def test_there_is_a_link_for_each_course(home: Path, tmp_path: Path) -> None:
    courses = tmp_path / "courses"
    for _ in range(2):
        link_into(home, courses, ["cs101", "cs102"])
    assert linked(home) == {name: str(courses / name) for name in ("cs101", "cs102")}


def test_a_former_grader_has_no_link(home: Path, tmp_path: Path) -> None:
    courses = tmp_path / "courses"
    link_into(home, courses, ["cs101", "cs102"])
    (home / "courses" / "mine").symlink_to(tmp_path)
    link_into(home, courses, ["cs102"])
    assert linked(home) == {"cs102": str(courses / "cs102"), "mine": str(tmp_path)}


def test_a_student_has_none(home: Path, tmp_path: Path) -> None:
    link_into(home, tmp_path / "courses", [])
    assert list(home.iterdir()) == []
    assert environment(str(home), [], "cs101") == {GRADES_NO_COURSE: "yes"}


def test_without_an_answer_of_the_service_a_user_is_not_taken_for_a_student(home: Path) -> None:
    assert environment(str(home), None, "cs101") == {}


def test_an_own_folder_is_kept(home: Path, tmp_path: Path) -> None:
    (home / "courses" / "cs101").mkdir(parents=True)
    link_into(home, tmp_path / "courses", ["cs101"])
    assert not (home / "courses" / "cs101").is_symlink()


def test_links_in_a_home_are_not_followed(home: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (home / "courses").symlink_to(elsewhere)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        link_into(home, INSIDE, ["cs101"])
    link_into(home, INSIDE, [])
    assert list(elsewhere.iterdir()) == []


def test_links_change_with_the_engine(home: Path, tmp_path: Path) -> None:
    courses = tmp_path / "courses"
    link_into(home, courses, ["cs101", "cs102"])
    link_into(home, INSIDE, ["cs101"], formerly=courses)
    assert linked(home) == {"cs101": "/carrel/courses/cs101"}
    link_into(home, courses, ["cs101"])
    assert linked(home) == {"cs101": str(courses / "cs101")}


@pytest.mark.parametrize(
    ("group", "shown"), [("cs102", "cs102"), ("elsewhere", "cs101"), ("", "cs101")]
)
def test_formgrader_shows_the_course_of_the_session(group: str, shown: str) -> None:
    found = environment("/home/teacher", ("cs101", "cs102"), group)
    assert found == {"CARREL_COURSE_FOLDER": f"/home/teacher/courses/{shown}"}
