"""A file lock that allows one supervisor per state folder.

The kernel releases the lock when its holder dies for any reason. A file names the holder, for
the error message.
"""

from __future__ import annotations

import fcntl
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ..config.state_folder import StateFolder
from ..errors import StateInUse
from .processes import ProcessId

HOLDER = "supervisor.json"


@contextmanager
def locked(state: StateFolder) -> Iterator[None]:
    """Lock the state folder.

    Raises:
        StateInUse: another process holds the lock; the message names it.
    """
    descriptor = os.open(state.run / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _in_use(state) from None
        me = ProcessId.of(os.getpid())
        # The lock counts; its holder's name is only for messages, and may not fit on a full disk.
        with suppress(OSError):
            if me is not None:
                me.save(state.run / HOLDER)
        try:
            yield
        finally:
            with suppress(OSError):
                (state.run / HOLDER).unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def holder(state: StateFolder) -> ProcessId | None:
    """Return the process that holds the lock, if any."""
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
