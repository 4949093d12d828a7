"""Keep the end of a session's log when its container is removed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from ....hub.files.filenames import safe_name

KIND: Final = "session"
SERVER: Final = "carrel.server"
"""Label of a session's container: the name of the server; empty for the default server."""
KEPT_LINES: Final = 2000
TAIL_LINES: Final = 25


def path_of(state: Path, owner: str, server: str) -> Path:
    """Return the path of a session's log: ``USER.log`` or ``USER--SERVER.log``.

    Names are unambiguous, because a safe name never contains two hyphens in a row.
    """
    name = f"{safe_name(owner)}--{safe_name(server)}" if server else safe_name(owner)
    return state / "logs" / "sessions" / f"{name}.log"


def keep(path: Path, text: str | None) -> None:
    """Write the log of the last session, and replace the log of the session before.

    Both the service and the hub remove the container of a session that ended. The second of them
    finds no container and passes None, which must not replace the log.
    """
    if text is None:
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)


def tail(text: str | None) -> str:
    """Return the last lines, which usually show why the session ended."""
    return "\n".join((text or "").rstrip().split("\n")[-TAIL_LINES:])
