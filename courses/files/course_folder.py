"""The folders of courses in nbgrader's layout, which those who grade see in their sessions.

STATE/courses/NAME/nbgrader_config.py   its name, for nbgrader's commands and formgrader
STATE/courses/NAME/gradebook.db         made by the first grading
STATE/courses/NAME/source/              what its teachers write
STATE/courses/NAME/data/                what everybody in the course reads
STATE/courses/NAME/release, submitted, autograded, feedback   as nbgrader makes them

In a container they may put anything there, also links and what SQLite takes for its own: the
service goes there by descriptors, never opens the gradebook, and what writes it sees nothing else
(decision 0013).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ...hub.files.safe_fs import Owner, add_file, add_folder, give_tree

DATA: Final = "data"
SOURCE: Final = "source"
_CONFIG: Final = """c = get_config()
c.CourseDirectory.course_id = "{course}"
"""


def make(folder: Path, course: str, owner: Owner | None = None) -> None:
    """What is there already stays as it is. ``owner``: whose it all becomes. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    if owner is not None:
        give_tree(folder, owner)
    add_folder(folder, SOURCE)
    add_folder(folder, DATA, mode=0o755)  # In a cage nobody is who the service is.
    add_file(folder, "nbgrader_config.py", _CONFIG.format(course=course).encode())


def add_source(folder: Path, assignment: str, files: Mapping[str, bytes]) -> None:
    """formgrader lists the assignments that it finds there; what is there stays. Raises OSError."""
    for name, content in files.items():
        add_file(folder, f"{SOURCE}/{assignment}/{name}", content)
