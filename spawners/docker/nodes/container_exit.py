"""How a container came to its end, and how it is brought to one."""

from __future__ import annotations

from typing import Final

from ....hub.interfaces.backend import AttemptStatus, ProcessState
from ....hub.messages.units import memory as size
from ....hub.records.requests import Cause, CauseCode
from ..containers.template import WARM
from ..engine.client import Container, DockerClient
from .node import Seen

_LADDER: Final = (("SIGINT", 0.5), ("SIGTERM", 0.25), ("SIGKILL", 0.25))
"""The signals in their order, each with its part of the patience."""
_ASK: Final = (
    "import signal, sys; from carrel.spawners.processes.lease_processes import ask; "
    "ask(sys.argv[1], None, signal.SIGUSR1)"
)


def sighting(seen: Seen, limit: int) -> AttemptStatus:
    """``limit``: the memory that containers may use, in bytes."""
    if seen.running:
        return AttemptStatus(life=ProcessState.ALIVE, handle=seen.handle)
    if seen.idle:
        return AttemptStatus(life=ProcessState.DEAD)
    return ended(seen.about, limit)


def ended(container: Container, limit: int) -> AttemptStatus:
    return AttemptStatus(
        life=ProcessState.DEAD,
        exit_status=container.exit_status,
        cause=_cause(container, limit),
    )


def _cause(container: Container, limit: int) -> Cause | None:
    """As far as the container tells; the end of a job is told by its journal."""
    if container.out_of_memory:
        return killed_for_memory(limit)
    if container.last_words:
        message = "The session's server ended."
        return Cause(code=CauseCode.SERVER_DIED, message=message, details=container.last_words)
    return None


def killed_for_memory(limit: int) -> Cause:
    return Cause(
        code=CauseCode.OUT_OF_MEMORY,
        message=f"Killed for memory: its container may use {size(limit)}, and wanted more.",
    )


def bring_about(engine: DockerClient, seen: Seen, limit: int, patience: float) -> AttemptStatus:
    """SIGINT, SIGTERM, SIGKILL within ``patience`` seconds; alive where it is not dead then.

    The init of the container passes the first two on to what it started; its own end takes all
    processes with it.

    Raises:
        Unavailable: the engine does not answer.
    """
    if seen.idle:
        engine.kill(seen.id, "SIGKILL")
        engine.wait(seen.id, patience)
    if seen.running:
        for signal, part in _LADDER:
            engine.kill(seen.id, signal)
            if engine.wait(seen.id, patience * part) is not None:
                break
    found = engine.inspect(seen.id)
    if found is None:
        return AttemptStatus(life=ProcessState.DEAD)
    if found.handle is not None:
        return AttemptStatus(life=ProcessState.ALIVE, handle=found.handle)
    return ended(found, limit)


def signal_those_that_wait(engine: DockerClient, seen: Seen, lease_id: str) -> None:
    """SIGUSR1 to the processes inside that have a handler for it: others would die of it.

    Raises:
        BackendFailed, Unavailable: they could not be told.
    """
    # One that has waited for its job has processes from before it knew of the lease.
    engine.run_inside(seen.id, ("python", "-c", _ASK, seen.labels.get(WARM, lease_id)))
