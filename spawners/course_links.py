"""The folders of courses in the homes of those who grade: ``~/courses/NAME``.

A link on this machine, and in a container the folder itself. Which one formgrader shows is said
by the environment: that of the session's group, or else the first.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from ..extensions.nbgrader import COURSE_FOLDER
from ..hub.config import StateFolder
from ..hub.errors import CarrelError
from ..hub.naming import safe_name
from ..hub.ports.records import COURSE_DATA
from .link import Link

FOLDER = "courses"

log = logging.getLogger(__name__)


async def graded_by(link: Link, person: str) -> tuple[str, ...] | None:
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


def link_into(home: Path, courses: Path, graded: Collection[str]) -> None:
    """Links to the folders of these, and of no other course. What is no link of ours stays.

    Raises:
        OSError: the home cannot be written.
    """
    folder = home / FOLDER
    wanted = {safe_name(name) for name in graded}
    if folder.is_dir():
        for each in folder.iterdir():
            if each.name not in wanted and each.is_symlink() and each.readlink().parent == courses:
                each.unlink()
    for name in wanted:
        folder.mkdir(exist_ok=True, mode=0o700)
        with suppress(FileExistsError):
            (folder / name).symlink_to(courses / name)
