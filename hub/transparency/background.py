"""Grow and publish the log in threads of the service; the scheduling loop never waits for them."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field

from ..errors import CarrelError
from ..proofs.document import SignedHead
from .publication import SECONDS, PublicationPlace
from .service import TransparencyLog

log = logging.getLogger(__name__)

ENTER_SECONDS = 5.0
"""Seconds between two looks at the queue, and at the heads to publish."""
PAUSE_SECONDS = 0.05
"""Seconds between two batches of lines, in which others write."""
RETRY_SECONDS = 60.0
"""Seconds after a failed publication."""
FINISH_SECONDS = 4.0
"""Seconds for the last lines, their head and its publication; the supervisor waits 10 s."""


@dataclass(slots=True, eq=False)
class LogPublisher:
    """Enters lines, signs a head every ``head_seconds``, and publishes heads.

    Every step is a transaction that can be repeated, so that it may end anywhere.
    """

    log: TransparencyLog
    place: PublicationPlace
    head_seconds: float
    _next_head: float = field(default=0.0)
    _publishing: threading.Lock = field(default_factory=threading.Lock, init=False)
    _stopping: threading.Event = field(default_factory=threading.Event, init=False)
    _growth: threading.Thread | None = field(default=None, init=False)

    def start(self) -> None:
        """Start both threads."""
        given = (self._stopping,)
        self._growth = threading.Thread(target=self.run, args=given, name="log", daemon=True)
        self._growth.start()
        threading.Thread(
            target=self.run_publication, args=given, name="log-publication", daemon=True
        ).start()

    def stop(self) -> None:
        """Wait until the last lines are entered, but not for a command that hangs."""
        self._stopping.set()
        if self._growth is not None:
            self._growth.join(FINISH_SECONDS + 1)

    def run(self, stopping: threading.Event) -> None:
        """Enter lines and sign heads until told to stop, and then those that are left."""
        while not stopping.is_set():
            entered = 0
            try:
                entered = self.work()
            except CarrelError as error:
                log.warning("log: %s", error)
            except Exception:
                # A bug here must not end the growth of the log until the next restart.
                log.exception("the log could not grow")
            stopping.wait(PAUSE_SECONDS if entered else ENTER_SECONDS)
        try:
            self.finish()
        except CarrelError as error:
            log.warning("log: the next start enters the last lines: %s", error)
        except Exception:
            log.exception("the log could not be completed")

    def run_publication(self, stopping: threading.Event) -> None:
        """Publish heads until told to stop; beside ``run``, since a command may take a minute."""
        while not stopping.is_set():
            published = False
            try:
                published = self.publish(stopping)
            except CarrelError as error:
                log.warning("log: %s", error)
            except Exception:
                log.exception("the heads of the log could not be published")
            stopping.wait(ENTER_SECONDS if published else RETRY_SECONDS)

    def work(self) -> int:
        """Run one round; return how many lines were entered."""
        entered = self.log.enter_lines()
        now = self.log.clock()
        if not entered and now >= self._next_head:
            self._next_head = now + self.head_seconds
            self.log.make_head()
        return entered

    def publish(self, stopping: threading.Event | None = None) -> bool:
        """Publish all heads, the newest first; return whether none failed.

        The newest head covers all lines before it, so that a long list delays no proof of them.
        """
        if not self.place.configured:
            return True
        with self._publishing:
            while stopping is None or not stopping.is_set():
                newest = self.log.store.newest_unpublished()
                if newest is None:
                    return True
                if not self._publish(*newest, SECONDS):
                    return False
        return True

    def finish(self, seconds: float = FINISH_SECONDS) -> None:
        """Enter the lines that are left, sign a head and try to publish it, in limited time.

        Raises:
            CarrelError: the database cannot be written.
        """
        ends = time.monotonic() + seconds
        while self.log.enter_lines() and time.monotonic() < ends:
            pass
        self.log.make_head()
        left = ends - time.monotonic()
        if self.place.configured and left > 0 and self._publishing.acquire(timeout=left):
            try:
                newest = self.log.store.newest_unpublished()
                if newest is not None:
                    self._publish(*newest, max(1.0, ends - time.monotonic()))
            finally:
                self._publishing.release()

    def _publish(self, size: int, head: SignedHead, seconds: float) -> bool:
        store = self.log.store
        try:
            self.place.publish(head, seconds=seconds)
        except CarrelError as error:
            log.warning("a head of the log could not be published: %s", error)
            store.note_publication(size, at=None, error=str(error))
            return False
        store.note_publication(size, at=self.log.clock())
        return True
