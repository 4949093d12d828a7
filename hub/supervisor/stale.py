"""Stops processes of the control plane whose supervisor died, found by their pid files."""

from __future__ import annotations

import signal
from collections.abc import Callable

from ..config.state_folder import StateFolder
from ..supervisor.processes import ProcessId, stop_all

NAMES = ("service", "hub", "proxy")
"""The processes in the order in which they are stopped."""
_STEPS = ((signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0))


def stop_stale(state: StateFolder, say: Callable[[str], None]) -> tuple[str, ...]:
    """Stop the processes that an earlier supervisor left; return the names of those that ran.

    A pid file identifies one process, so a reused pid is never signalled. Call it only while
    holding the lock.
    """
    stopped = []
    for name in NAMES:
        note = state.run / f"{name}.json"
        found = ProcessId.load(note)
        if found is not None and found.alive:
            say(f"Stopping the {name} of an earlier start (process {found.pid}).")
            stop_all(lambda found=found: (found,) if found.alive else (), _STEPS)  # type: ignore[misc]
            stopped.append(name)
        note.unlink(missing_ok=True)
    return tuple(stopped)
