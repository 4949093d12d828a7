"""Link the folders of courses into the homes of their graders: ``~/courses/NAME``.

A link points to the folder as the session sees it: in the state folder for a local session, at its
mount point in a container. The environment names the course that formgrader opens: the course of
the session's group, or else the first one. It tells JupyterLab of users who grade no course.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from ...extensions.nbgrader import COURSE_FOLDER, GRADES_NO_COURSE
from ...hub.client.api.internal import InternalClient
from ...hub.config.state_folder import StateFolder
from ...hub.errors import CarrelError
from ...hub.files.filenames import safe_name
from ...hub.files.safe_fs import add_folder, opened_folder
from ...hub.interfaces.backend_settings import COURSE_DATA

FOLDER = "courses"
INSIDE: Final = Path("/carrel/courses")
"""Mount point in a container."""

log = logging.getLogger(__name__)


async def graded_by(link: InternalClient, person: str) -> tuple[str, ...] | None:
    """Return the courses that a person grades; None if the service cannot say.

    A session starts in either case.
    """
    try:
        return await link.graded(person)
    except CarrelError as error:
        log.warning("The courses that %s grades are not known: %s", person, error)
        return None


def environment(home: str, graded: Sequence[str] | None, group: str) -> dict[str, str]:
    """Return the variable that names the course for formgrader, or that says that there is none.

    Args:
        home: path of the home as the session sees it.
        graded: the courses that the user grades; None if not known.
        group: the group of the session.
    """
    if graded is None:
        return {}
    if not graded:
        return {GRADES_NO_COURSE: "yes"}
    course = group if group in graded else graded[0]
    return {COURSE_FOLDER: f"{home}/{FOLDER}/{safe_name(course)}"}


def course_data(state: Path, group: str) -> dict[str, str]:
    """Return the variable with the data folder of the group's course, for a local process.

    Empty if the course has no data.
    """
    data = StateFolder(root=state).course_data(group)
    return {COURSE_DATA: str(data)} if data.is_dir() else {}


def link_into(
    home: Path, courses: Path, graded: Collection[str], *, formerly: Path = INSIDE
) -> None:
    """Link the folders of these courses into a home, and remove links to other courses.

    Only links that Carrel created are removed, and no link inside the home is followed.

    Args:
        formerly: the folder to which links of another engine point.

    Raises:
        OSError: the home is not writable, or ``courses`` exists and is not a folder.
    """
    names = {safe_name(name) for name in graded}
    if names:
        add_folder(home, FOLDER)
    try:
        with opened_folder(home, FOLDER) as folder:
            _unlink_others(folder, {f"{courses}/{name}" for name in names}, {courses, formerly})
            for name in names:
                with suppress(FileExistsError):
                    os.symlink(courses / name, name, dir_fd=folder)
    except OSError:
        if names:
            raise


def _unlink_others(folder: int, targets: Collection[str], parents: Collection[Path]) -> None:
    for name in os.listdir(folder):
        try:
            target = os.readlink(name, dir_fd=folder)
        except OSError:
            continue  # not a link
        if Path(target).parent in parents and target not in targets:
            os.unlink(name, dir_fd=folder)
