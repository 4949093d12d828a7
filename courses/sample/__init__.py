"""The sample course: notebooks that the demo puts into the homes of its accounts.

``digits.ipynb`` is for everybody. ``source/`` holds the units of "GPU programming for everybody"
in nbgrader's format, with their solutions and tests, and ``TEACHING.md`` is the teacher's guide:
they are for teachers only. ``release/`` holds what nbgrader makes of the first unit for students.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from ...hub.files.safe_fs import add_file

FIRST_UNIT = "unit1-arrays-and-cost"
COURSE_FOLDER = "gpu-course"
"""Where teachers find the course in their home: nbgrader's layout, with its configuration."""


def copy_into(home: Path) -> None:
    """Copy the sample notebook into a home; existing files are kept."""
    _add(home, "digits.ipynb", files(__package__) / "digits.ipynb")


def copy_course_into(home: Path) -> None:
    """Copy the course into a teacher's home; existing files are kept."""
    for name, source in course_files():
        _add(home, f"{COURSE_FOLDER}/{name}", source)


def course_files() -> Iterator[tuple[str, Traversable]]:
    """Every file of the course by its name in the course folder."""
    here = files(__package__)
    for name in ("TEACHING.md", "nbgrader_config.json"):
        yield name, here / name
    for unit in unit_names():
        name = f"source/{unit}/{unit}.ipynb"
        yield name, here / name


def first_unit() -> tuple[dict[str, bytes], dict[str, bytes]]:
    """The files of the first unit: the teacher's source, and the student version."""
    name = f"{FIRST_UNIT}.ipynb"
    here = files(__package__)
    written, released = (
        (here / step / FIRST_UNIT / name).read_bytes() for step in ("source", "release")
    )
    return {name: written}, {name: released}


def unit_names() -> tuple[str, ...]:
    """The units in their order, which are nbgrader's assignments."""
    source = files(__package__) / "source"
    return tuple(sorted(each.name for each in source.iterdir() if each.is_dir()))


def _add(home: Path, name: str, source: Traversable) -> None:
    add_file(home, name, source.read_bytes())
