"""``carrel.notice()`` and ``carrel.saved()``: save a job's work before it is stopped.

A job may be preempted: it gets a notice with a grace period, and SIGUSR1 if it handles that signal;
then it is stopped and queued again. Outside of a job there is never a notice.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

NOTICE_VARIABLE = "CARREL_NOTICE"
SAVED_VARIABLE = "CARREL_SAVED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Why and when this job is stopped.

    Attributes:
        message: the message that its owner reads.
        stops_at: when, in seconds since the epoch.
        comes_back: whether it is queued again afterwards.
    """

    message: str
    stops_at: float
    comes_back: bool


def notice() -> Notice | None:
    """Return the notice to this job; None unless it will be stopped.

    >>> for step in range(steps):
    ...     train(step)
    ...     if carrel.notice():
    ...         save_checkpoint()
    ...         carrel.saved()
    """
    path = os.environ.get(NOTICE_VARIABLE)
    if not path:
        return None
    try:
        found = json.loads(Path(path).read_text())
        return Notice(
            message=str(found["message"]),
            stops_at=float(found["stops_at"]),
            comes_back=bool(found["comes_back"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def saved() -> None:
    """Report that the work is saved: a stop from now on loses only later work.

    Jobs that lose the least are preempted first. From a shell: ``touch "$CARREL_SAVED"``.
    """
    path = os.environ.get(SAVED_VARIABLE)
    if path:
        try:
            Path(path).touch(mode=0o600)
        except OSError:
            return
