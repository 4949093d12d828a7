"""Grow and publish the log in a thread of the service; the scheduling loop never waits for it."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field

from ..errors import CarrelError
from .publication import PublicationPlace
from .service import TransparencyLog

log = logging.getLogger(__name__)

ENTER_SECONDS = 5.0
"""Seconds between two batches of lines, while the queue is short."""
_HEADS = 50
"""Heads that are published in one round."""


@dataclass(slots=True, eq=False)
class LogPublisher:
    """Enters lines, signs a head every ``head_seconds``, and publishes heads.

    Every step is a transaction that can be repeated, so that it may end anywhere.
    """

    log: TransparencyLog
    place: PublicationPlace
    head_seconds: float
    _next_head: float = field(default=0.0)

    def run(self, stopping: threading.Event) -> None:
        """Work until told to stop."""
        while not stopping.is_set():
            entered = 0
            try:
                entered = self.work()
            except CarrelError as error:
                log.warning("log: %s", error)
            except Exception:
                # A bug here must not end the growth of the log until the next restart.
                log.exception("the log could not grow")
            if not entered:
                stopping.wait(ENTER_SECONDS)

    def work(self) -> int:
        """Run one round; return how many lines were entered."""
        entered = self.log.enter_lines()
        now = self.log.clock()
        if not entered and now >= self._next_head:
            self._next_head = now + self.head_seconds
            self.log.make_head()
            self.publish()
        return entered

    def publish(self) -> None:
        """Publish heads, oldest first, until one fails."""
        if not self.place.configured:
            return
        store = self.log.store
        for size, head in store.unpublished(_HEADS):
            try:
                self.place.publish(head)
            except CarrelError as error:
                log.warning("a head of the log could not be published: %s", error)
                store.note_publication(size, at=None, error=str(error))
                return
            store.note_publication(size, at=self.log.clock())
