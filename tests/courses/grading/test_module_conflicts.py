"""A student's file does not take the place of a released helper module."""

from __future__ import annotations

import pytest

from carrel.courses.grading.module_conflicts import merged

RELEASED = {"helper.py": b"the release's", "tools/plot.py": b"plot", "data.csv": b"1,2"}


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("helper.py", "helper.py was changed: the assignment's own was used."),
        ("data.csv", "data.csv was changed: the assignment's own was used."),
        ("helper/__init__.py", "it would replace the assignment's module helper."),
        ("helper.cpython-311-x86_64-linux-gnu.so", "the assignment's module helper."),
        ("helper.pyc", "it would replace the assignment's module helper."),
        ("tools.py", "it would replace the assignment's module tools.plot."),
    ],
)
def test_the_release_wins_and_the_student_is_told(name: str, note: str) -> None:
    files, notes = merged({name: b"mine"}, RELEASED)
    assert files == RELEASED
    assert len(notes) == 1
    assert notes[0].endswith(note)


def test_other_files_of_the_student_are_used() -> None:
    own = {"mine.py": b"mine", "helper.txt": b"text", "helper.py": RELEASED["helper.py"]}
    files, notes = merged(own, RELEASED)
    assert files == {**RELEASED, "mine.py": b"mine", "helper.txt": b"text"}
    assert notes == ()


def test_many_notes_are_summed_up() -> None:
    own = {f"helper/{number}.py": b"" for number in range(30)}
    _, notes = merged({**own, "helper/__init__.py": b""}, RELEASED)
    assert len(notes) <= 11
