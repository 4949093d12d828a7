"""Stop containers, and report how they ended."""

from __future__ import annotations

from typing import Final

from ....hub.interfaces.backend import AttemptStatus, ProcessState
from ....hub.messages.units import memory
from ....hub.records.requests import Cause, CauseCode
from ..containers.template import WARM
from ..engine.client import Container, DockerClient
from .node import SurveyedContainer

_LADDER: Final = (("SIGINT", 0.5), ("SIGTERM", 0.25), ("SIGKILL", 0.25))
"""The signals in order, with their fraction of the patience."""
_SIGNAL_SCRIPT: Final = (
    "import signal, sys; from carrel.spawners.processes import ask; "
    "ask(sys.argv[1], None, signal.SIGUSR1)"
)


def attempt_status(seen: SurveyedContainer, limit: int) -> AttemptStatus:
    """Return the status of a container's attempt.

    Args:
        limit: memory limit of the container, in bytes.
    """
    if seen.running:
        return AttemptStatus(life=ProcessState.ALIVE, handle=seen.handle)
    if seen.idle:
        return AttemptStatus(life=ProcessState.DEAD)
    return ended(seen.details, limit)


def ended(container: Container, limit: int) -> AttemptStatus:
    return AttemptStatus(
        life=ProcessState.DEAD,
        exit_status=container.exit_status,
        cause=_cause(container, limit),
    )


def _cause(container: Container, limit: int) -> Cause | None:
    """Return the cause that the container shows; a job's journal may have a better one."""
    if container.out_of_memory:
        return killed_for_memory(limit)
    if container.log_tail:
        message = "The session's server ended."
        return Cause(code=CauseCode.SERVER_DIED, message=message, details=container.log_tail)
    return None


def killed_for_memory(limit: int) -> Cause:
    return Cause(
        code=CauseCode.OUT_OF_MEMORY,
        message=f"Killed for memory: its container exceeded its limit of {memory(limit)}.",
    )


def stop(
    engine: DockerClient, seen: SurveyedContainer, limit: int, patience: float
) -> AttemptStatus:
    """Send SIGINT, SIGTERM, SIGKILL within ``patience`` seconds; return the status afterwards.

    The container's init forwards the first two signals to its child; when the init ends, all
    processes end.

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


def request_checkpoint(engine: DockerClient, seen: SurveyedContainer, lease_id: str) -> None:
    """Send SIGUSR1 to the processes in the container that handle it: it would kill the others.

    Raises:
        BackendFailed: the signal could not be sent.
        Unavailable: the engine does not answer.
    """
    # Processes of a warm container may be older than its lease, and have the container's name in
    # their environment.
    name = seen.labels.get(WARM, lease_id)
    engine.run_inside(seen.id, ("python", "-P", "-c", _SIGNAL_SCRIPT, name))
