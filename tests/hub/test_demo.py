"""What the demo puts into homes: the notebook for everybody, the course for its teacher."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest

from carrel.courses.sample import COURSE_FOLDER, unit_names
from carrel.hub import demo
from carrel.hub.accounts.demo import DEMO_GROUP
from carrel.hub.commands import Commands
from carrel.hub.store import MemoryStore
from carrel.spawners.fake import FakeBackend

from .doubles import Clock, FakeHub, build


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    made = build(MemoryStore(), FakeBackend(), FakeHub(), Clock(), tmp_path)
    # Without the group that other tests begin with.
    return replace(made, store=MemoryStore())


def test_the_teacher_gets_the_course_and_students_do_not(commands: Commands) -> None:
    demo.prepare_demo(commands, threading.Event())
    students, teacher = commands.files.home("student1"), commands.files.home("teacher")
    assert [each.name for each in students.iterdir()] == ["digits.ipynb"]
    course = teacher / COURSE_FOLDER
    assert (teacher / "digits.ipynb").is_file()
    assert "Handing out" in (course / "TEACHING.md").read_text()
    for unit in unit_names():
        nbformat.validate(nbformat.read(course / "source" / unit / f"{unit}.ipynb", as_version=4))
    assert commands.store.group(DEMO_GROUP).max_devices == 4


def test_later_starts_touch_nothing(commands: Commands) -> None:
    demo.prepare_demo(commands, threading.Event())
    course = commands.files.home("teacher") / COURSE_FOLDER
    (course / "TEACHING.md").unlink()
    demo.prepare_demo(commands, threading.Event())
    assert not (course / "TEACHING.md").exists()
