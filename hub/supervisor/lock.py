"""One supervisor per state folder: a file lock that names its holder.

The kernel releases the lock when its holder dies, however that happens. The name in the file
is for the person who finds it locked.
"""

from __future__ import annotations

import fcntl
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager

from ..config.state_folder import StateFolder
from ..errors import StateInUse
from .processes import ProcessId

HOLDER = "supervisor.json"


@contextmanager
def locked(state: StateFolder) -> Iterator[None]:
    """Hold the state folder.

    Raises:
        StateInUse: and says which process has it.
    """
    descriptor = os.open(state.run / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _in_use(state) from None
        me = ProcessId.of(os.getpid())
        if me is not None:
            me.save(state.run / HOLDER)
        try:
            yield
        finally:
            (state.run / HOLDER).unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def holder(state: StateFolder) -> ProcessId | None:
    """The process that holds the folder, if one does."""
    found = ProcessId.load(state.run / HOLDER)
    return found if found is not None and found.alive else None


def _in_use(state: StateFolder) -> StateInUse:
    found = holder(state)
    who = "another process" if found is None else f"process {found.pid} ({found.command})"
    return StateInUse(
        f"The state folder {state.root} is in use by {who}.",
        accepted=(
            "Stop it first, with Ctrl-C or with: "
            f"carrel down --state {shlex.quote(str(state.root))}; "
            "or start another Carrel with --state and --port."
        ),
    )
