"""Create the folder of a course, in nbgrader's layout; its graders see it in their sessions.

STATE/courses/NAME/nbgrader_config.py   its name, for nbgrader's commands and formgrader
STATE/courses/NAME/gradebook.db         created by the first grading run
STATE/courses/NAME/source/              what its teachers write
STATE/courses/NAME/data/                readable for all members of the course
STATE/courses/NAME/release, submitted, autograded, feedback   as nbgrader creates them

In a container, users can put anything there, including links and SQLite journals: the service
opens files by descriptors and never opens the gradebook itself. The process that writes the
gradebook sees nothing else (decision 0013).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ...hub.files.filenames import safe_name
from ...hub.files.safe_fs import Owner, add_file, add_folder, give_tree

DATA: Final = "data"
SOURCE: Final = "source"
_CONFIG: Final = """c = get_config()
c.CourseDirectory.course_id = "{course}"
"""


def folder_of(root: Path | None, course: str) -> Path | None:
    """The folder of one course; None where there is no folder of all courses."""
    return None if root is None else root / safe_name(course)


def make(folder: Path, course: str, owner: Owner | None = None) -> None:
    """Create what is missing, and give all of it to ``owner``. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    if owner is not None:
        give_tree(folder, owner)
    add_folder(folder, SOURCE)
    add_folder(folder, DATA, mode=0o755)  # A sandbox runs as another user.
    add_file(folder, "nbgrader_config.py", _CONFIG.format(course=course).encode())


def add_source(folder: Path, assignment: str, files: Mapping[str, bytes]) -> None:
    """Add files that are missing: formgrader lists the assignments that it finds there.

    Raises OSError.
    """
    for name, content in files.items():
        add_file(folder, f"{SOURCE}/{assignment}/{name}", content)
