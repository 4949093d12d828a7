"""Containers that belong to no lease: found by their labels, and removed exactly once.

After a crash of the hub, the service or the engine a container may run on whose lease has been
given back, or lie there ended. A lease is written before its container is made: what was listed
before the leases were read, and is not among them, has none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

from ..containers import session_log
from ..containers.template import KIND, OWNER
from ..engine.client import DockerClient, ListedContainer
from .node import Node, Seen

PATIENCE: Final = 4.0
_SESSION: Final = "session"


def orphan_containers(
    node: Node, live: Callable[[], Collection[str]]
) -> tuple[tuple[str, Seen], ...]:
    """The containers without a lease, with the ids that they were made for.

    Raises:
        Unavailable: the engine does not answer.
    """
    listed = node.survey()
    if not listed:
        return ()
    known = live()
    return tuple(
        (lease, seen) for lease, several in listed.items() if lease not in known for seen in several
    )


def keep_log(engine: DockerClient, seen: Seen | ListedContainer, state: Path) -> None:
    """A job's log lies in its folder already; that of a session goes with its container.

    Raises:
        Unavailable: the engine does not answer.
    """
    if seen.labels.get(KIND) != _SESSION:
        return
    text = engine.logs(seen.id, lines=session_log.KEPT_LINES)
    owner, server = seen.labels.get(OWNER, ""), seen.labels.get(session_log.SERVER, "")
    session_log.keep(session_log.path_of(state, owner, server), text)
