"""Read a student's notebook as grading left it in nbgrader's folder ``autograded/``."""

from __future__ import annotations

from pathlib import Path

from ...hub.errors import TooLarge
from ...hub.files.local import MAX_OUTPUT_BYTES
from ...hub.files.safe_fs import opened_file


def graded_notebook(folder: Path, student: str, assignment: str, notebook: str) -> bytes | None:
    """Return the graded notebook, with the outputs of its tests; None if it was not submitted.

    Raises TooLarge.
    """
    path = ("autograded", student, assignment, f"{notebook}.ipynb")
    try:
        with opened_file(folder, *path) as file:
            graded = file.read(MAX_OUTPUT_BYTES + 1)
    except OSError:
        return None
    if len(graded) > MAX_OUTPUT_BYTES:
        raise TooLarge(
            f"{'/'.join(path)} is too large for a page.",
            accepted=f"At most {MAX_OUTPUT_BYTES >> 20} MiB in the course's folder.",
        )
    return graded
