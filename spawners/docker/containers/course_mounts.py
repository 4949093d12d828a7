"""The folders of courses in the containers of those who grade them (decision 13).

Which these are says the service, whenever a session starts, and nothing that a user can set.
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
from .home_mounts import homes_of
from .template import Mount

log = logging.getLogger(__name__)


async def linked(
    site: BackendSettings,
    link: InternalClient,
    person: str,
    host: DockerHost,
    tell: Callable[[str], None],
) -> tuple[str, ...]:
    """The courses whose folders a session on this host gets, with links to them in the home.

    None of them while the service does not say. ``tell`` is told why there is none otherwise.
    """
    assert site.docker is not None
    here = site.docker.hosts[0]
    graded = await graded_by(link, person)
    if graded is None:
        return ()
    if graded and host != here:
        tell(
            f"This session runs on {host.node}, and the folders of courses are on {here.node}: "
            "for formgrader start one without a device."
        )
        graded = ()
    try:
        await asyncio.to_thread(_link, site, person, graded)
    except OSError as error:
        tell(
            "The folders of your courses are not in this session: ~/courses cannot be written "
            f"({error.strerror})."
        )
        return ()
    return graded


def _link(site: BackendSettings, person: str, graded: Collection[str]) -> None:
    home = homes_of(site).ready(person)
    link_into(home, INSIDE, graded, formerly=StateFolder(root=site.state).courses)


def graded_mounts(site: BackendSettings, graded: Collection[str]) -> tuple[Mount, ...]:
    """The folders of these courses, to be written."""
    state = StateFolder(root=site.state)
    found: list[Mount] = []
    for course in graded:
        folder = state.course(course)
        if any(each.is_symlink() or not each.is_dir() for each in (folder, folder / DATA)):
            log.warning("%s has no folder that could be mounted", course)
            continue
        found += course_mounts(folder, str(INSIDE / folder.name))
    return tuple(found)


def course_mounts(folder: Path, target: str) -> tuple[Mount, ...]:
    """The folder of a course; within it its data are a mount of their own.

    Whoever writes there can put anything in the place of any folder but of one that is mounted,
    and the data are mounted for everybody else in the course: a link there would lead to anything
    on the host.
    """
    return (
        Mount(source=str(folder), target=target),
        Mount(source=str(folder / DATA), target=f"{target}/{DATA}"),
    )
