"""Mount the folders of courses into the containers of their graders (decision 13).

At every session start the service returns these courses; users cannot choose them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from pathlib import Path

from ....courses.files.course_folder import DATA
from ....hub.client.api.internal import InternalClient
from ....hub.config.state_folder import StateFolder
from ....hub.interfaces.backend_settings import BackendSettings, DockerHost
from ...common.course_links import INSIDE, graded_by, link_into
from .home_mounts import home_folders
from .template import Mount

log = logging.getLogger(__name__)


async def link_courses(
    site: BackendSettings,
    link: InternalClient,
    person: str,
    host: DockerHost,
    say: Callable[[str], None],
) -> tuple[str, ...] | None:
    """Link a grader's courses into the home, and return those that a session on this host gets.

    Args:
        say: receives the reason if the session gets no course folder.

    Returns:
        the courses; None if the session gets no folder, or the service does not answer.
    """
    assert site.docker is not None
    here = site.docker.hosts[0]
    graded = await graded_by(link, person)
    if graded is None:
        return None
    elsewhere = bool(graded) and host != here
    if elsewhere:
        say(
            f"This session runs on {host.node}, but the course folders are on {here.node}: "
            "to use formgrader, start a session without a device."
        )
    try:
        await asyncio.to_thread(_link, site, person, () if elsewhere else graded)
    except OSError as error:
        say(
            "This session has no folders of your courses: ~/courses is not writable "
            f"({error.strerror})."
        )
        return None
    return None if elsewhere else graded


def _link(site: BackendSettings, person: str, graded: Collection[str]) -> None:
    home = home_folders(site).ready(person)
    link_into(home, INSIDE, graded, formerly=StateFolder(root=site.state).courses)


def graded_mounts(site: BackendSettings, graded: Collection[str]) -> tuple[Mount, ...]:
    """Mount the folders of these courses, writable."""
    state = StateFolder(root=site.state)
    mounts: list[Mount] = []
    for course in graded:
        folder = state.course(course)
        if any(part.is_symlink() or not part.is_dir() for part in (folder, folder / DATA)):
            log.warning("the course %s has no folder to mount", course)
            continue
        mounts += course_mounts(folder, str(INSIDE / folder.name))
    return tuple(mounts)


def course_mounts(folder: Path, target: str) -> tuple[Mount, ...]:
    """Mount the folder of a course, and its data folder as a separate mount.

    Graders can replace any folder of a course except a mount point, and the data folder is mounted
    for all members: a symbolic link in its place would expose any folder of the host.
    """
    return (
        Mount(source=str(folder), target=target),
        Mount(source=str(folder / DATA), target=f"{target}/{DATA}"),
    )
