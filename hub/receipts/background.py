"""Write the receipt of each job at its end, in a thread of the service.

The scheduling loop never waits for it. The position among the events is stored after the receipts
of a batch, and a receipt that is there is not written again: the service may end anywhere.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from typing import Final

from ..errors import CarrelError, Unavailable
from ..interfaces.clock import MonotonicClock, monotonic
from .ended_jobs import EndedJobs
from .service import ReceiptService

log = logging.getLogger(__name__)

EVERY_SECONDS: Final = 2.0
RETRY_SECONDS: Final = 60.0
"""Seconds until the next attempt, while key or disk space are missing."""
_MOST_REST: Final = 1.0
BATCH: Final = 20
"""Receipts that are written before the position is stored."""
_STOP_SECONDS: Final = 2.0
"""How long the service waits at its end for the receipt that is being written."""
_MOST_BEHIND: Final = 1000
"""Events without the end of a job, after which the position is stored, too."""


@dataclass(slots=True, eq=False)
class ReceiptWriter:
    """Called by one thread. After each receipt it rests as long as that took, at most a second.

    The thread thus leaves half of a processor to the rest of the service, also after a thousand
    jobs that end together.
    """

    jobs: EndedJobs
    receipts: ReceiptService
    clock: MonotonicClock = monotonic
    _position: int | None = field(default=None, init=False)
    _stored: int = field(default=0, init=False)
    _stopping: threading.Event = field(default_factory=threading.Event, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="receipts", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Begin no further receipt."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(_STOP_SECONDS)

    def work(self) -> int:
        """Write the receipts of at most ``BATCH`` ended jobs; return their number.

        Raises:
            Unavailable: receipts cannot be written now; none is lost.
        """
        if self._position is None:
            self._position = self._stored = self.jobs.position()
        found, position = self.jobs.after(self._position, limit=BATCH)
        if found and self.receipts.context.files.is_full():
            raise Unavailable("The disk is full: receipts are written once there is space.")
        for job in found:
            began = self.clock()
            self._write(job)
            if self._stopping.wait(min(_MOST_REST, self.clock() - began)):
                return 0
        self._position = position
        if found or position - self._stored >= _MOST_BEHIND:
            self.jobs.advance(position)
            self._stored = position
        return len(found)

    def _run(self) -> None:
        while not self._stopping.is_set():
            pause = RETRY_SECONDS
            try:
                pause = 0.0 if self.work() else EVERY_SECONDS
            except CarrelError as error:
                log.warning("receipts: %s", error)
            except Exception:
                # A bug must not end the receipts of later jobs.
                log.exception("receipts failed")
            self._stopping.wait(pause)

    def _write(self, job: str) -> None:
        try:
            self.receipts.crate(None, job)
        except Unavailable:
            raise
        except Exception:
            # It is written at the first request, if it can be; the other jobs get theirs.
            log.exception("the receipt of %s could not be written", job)
