"""``carrel.progress(i, n)``: report a job's progress, inside a cell or a command.

It overwrites one line in the file named by ``CARREL_PROGRESS``, which the runner reads five times a
second. Outside of a job it does nothing, and it never raises because of the file: progress is not
worth a failed job.
"""

from __future__ import annotations

import json
import os

VARIABLE = "CARREL_PROGRESS"

_open: dict[tuple[int, str], int] = {}
"""The open file by process and path: a forked worker opens its own."""


def progress(done: float, of: float | None = None, text: str = "") -> None:
    """Report that ``done`` of ``of`` are done, in any unit; prints nothing.

    Args:
        done: how much is done.
        of: how much there is in all, None if unknown.
        text: what is being done now; at most 200 characters are shown.
    """
    path = os.environ.get(VARIABLE)
    if not path:
        return
    total = None if of is None else float(of)
    found = {"done": float(done), "of": total, "text": str(text)[:200]}
    line = (json.dumps(found) + "\n").encode()
    try:
        descriptor = _descriptor(path)
        os.pwrite(descriptor, line, 0)
        os.ftruncate(descriptor, len(line))
    except OSError:
        return


def _descriptor(path: str) -> int:
    key = (os.getpid(), path)
    if key not in _open:
        _open[key] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    return _open[key]
