"""Wait for space on a full disk, rather than end a sweep."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Final, TypeVar

from ....hub.attempts.journal import DISK_FULL, log_line
from ..notebook.engine import Stopped

_PAUSE_SECONDS: Final = 1.0
_Result = TypeVar("_Result")


async def with_space(stopping: threading.Event, write: Callable[[], _Result]) -> _Result:
    """Return what a function returns that writes files; on a full disk, call it again each second.

    Args:
        stopping: set when the attempt is to stop.
        write: may have written a part when it raises.

    Raises:
        OSError: it failed for another reason.
        Stopped: the attempt was stopped while the disk was full.
    """
    waits = False
    while True:
        try:
            return write()
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise
            if stopping.is_set():
                raise Stopped from error
        if not waits:
            log_line("the disk is full: the sweep waits for space")
        waits = True
        await asyncio.sleep(_PAUSE_SECONDS)
