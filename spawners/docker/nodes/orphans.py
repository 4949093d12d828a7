"""Find containers that belong to no lease, by their labels.

After a crash of the hub, the service or the engine, a container may be left whose lease has been
released, running or ended. A lease is stored before its container is created: a container that was
listed before the leases were read, and whose lease is not among them, is an orphan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

from ...common.gang_processes import belongs_to
from ..containers import session_log
from ..containers.template import KIND, OWNER
from ..engine.client import START_SECONDS, DockerClient, ListedContainer
from .node import Node, SurveyedContainer

PATIENCE: Final = 4.0
_SESSION: Final = "session"


def orphan_containers(
    node: Node, live: Callable[[], Collection[str]]
) -> tuple[tuple[str, SurveyedContainer], ...]:
    """Return the containers without a live lease, as pairs of former lease id and container.

    Raises:
        Unavailable: the engine does not answer.
    """
    listed = node.survey(START_SECONDS)
    if not listed:
        return ()
    known = live()
    return tuple(
        (lease, container)
        for lease, containers in listed.items()
        if not belongs_to(lease, known)
        for container in containers
    )


def keep_log(engine: DockerClient, seen: SurveyedContainer | ListedContainer, state: Path) -> None:
    """Keep a session's log before its container is removed; a job's log is in its folder.

    Raises:
        Unavailable: the engine does not answer.
    """
    if seen.labels.get(KIND) != _SESSION:
        return
    text = engine.logs(seen.id, lines=session_log.KEPT_LINES)
    owner, server = seen.labels.get(OWNER, ""), seen.labels.get(session_log.SERVER, "")
    session_log.keep(session_log.path_of(state, owner, server), text)
