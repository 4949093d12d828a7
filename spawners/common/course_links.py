"""The folders of courses in the homes of those who grade: ``~/courses/NAME``.

A link to where the session has the folder: on this machine in the state folder, in a container
where it is mounted. Which one formgrader shows is said by the environment: that of the session's
group, or else the first.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from ...extensions.nbgrader import COURSE_FOLDER
from ...hub.client.api.internal import InternalClient
from ...hub.config.state_folder import StateFolder
from ...hub.errors import CarrelError
from ...hub.files.filenames import safe_name
from ...hub.files.safe_fs import add_folder, opened_folder
from ...hub.interfaces.backend_settings import COURSE_DATA

FOLDER = "courses"
INSIDE: Final = Path("/carrel/courses")
"""Where a container has them."""

log = logging.getLogger(__name__)


async def graded_by(link: InternalClient, person: str) -> tuple[str, ...] | None:
    """The courses that somebody grades; None while nobody can say: a session starts even so."""
    try:
        return await link.graded(person)
    except CarrelError as error:
        log.warning("The courses that %s grades are not known: %s", person, error)
        return None


def environment(home: str, graded: Sequence[str], group: str) -> dict[str, str]:
    """``home``: as the session sees it."""
    if not graded:
        return {}
    shown = group if group in graded else graded[0]
    return {COURSE_FOLDER: f"{home}/{FOLDER}/{safe_name(shown)}"}


def course_data(state: Path, group: str) -> dict[str, str]:
    """Where a process of this machine finds the data of the group's course."""
    data = StateFolder(root=state).course_data(group)
    return {COURSE_DATA: str(data)} if data.is_dir() else {}


def link_into(
    home: Path, courses: Path, graded: Collection[str], *, formerly: Path = INSIDE
) -> None:
    """Links to the folders of these, and of no other course. What is no link of ours stays.

    ``formerly``: where they led with another engine. Nothing is followed that lies in the home.

    Raises:
        OSError: the home cannot be written, or has something else called ``courses``.
    """
    wanted = {safe_name(name) for name in graded}
    if wanted:
        add_folder(home, FOLDER)
    try:
        with opened_folder(home, FOLDER) as folder:
            _unlink_others(folder, {f"{courses}/{name}" for name in wanted}, {courses, formerly})
            for name in wanted:
                with suppress(FileExistsError):
                    os.symlink(courses / name, name, dir_fd=folder)
    except OSError:
        if wanted:
            raise


def _unlink_others(folder: int, wanted: Collection[str], ours: Collection[Path]) -> None:
    for name in os.listdir(folder):
        try:
            target = os.readlink(name, dir_fd=folder)
        except OSError:
            continue  # No link.
        if Path(target).parent in ours and target not in wanted:
            os.unlink(name, dir_fd=folder)
