"""Run collector and delivery in threads of their own, beside the scheduling loop."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from ..errors import CarrelError
from .collector import Collector
from .delivery import NotificationDelivery

log = logging.getLogger(__name__)

EVERY_SECONDS: Final = 2.0
_MOST_SENDING: Final = 4
"""Messages that are sent at the same time; a slow server delays the others, and nothing else."""
_FORGET_EVERY: Final = 3600.0
_KEPT_SECONDS: Final = 7 * 86400.0


@dataclass(slots=True, eq=False)
class BackgroundNotifications:
    """Runs until ``stop``; its threads end with the process."""

    collector: Collector
    delivery: NotificationDelivery
    _stopping: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _sending: dict[str, threading.Thread] = field(default_factory=dict)
    _forgotten_at: float = 0.0

    def start(self) -> None:
        threading.Thread(target=self._run, name="notifications", daemon=True).start()

    def stop(self) -> None:
        """Begin nothing new; a message that is being sent is sent again if the process ends."""
        self._stopping.set()

    def step(self) -> None:
        """Collect what happened, and start to send what is due."""
        self.collector.collect()
        for channel in self.delivery.due():
            with self._lock:
                if channel in self._sending or len(self._sending) >= _MOST_SENDING:
                    continue
                thread = threading.Thread(
                    target=self._deliver, args=(channel,), name=f"notify-{channel}", daemon=True
                )
                self._sending[channel] = thread
            thread.start()
        now = self.delivery.clock()
        if now - self._forgotten_at >= _FORGET_EVERY:
            self._forgotten_at = now
            self.delivery.outbox.forget(now - _KEPT_SECONDS)

    def wait_for_sending(self, seconds: float) -> bool:
        """Wait at most so long for each message that is being sent; return whether all are."""
        with self._lock:
            threads = list(self._sending.values())
        for thread in threads:
            thread.join(seconds)
        return not any(thread.is_alive() for thread in threads)

    def _run(self) -> None:
        while not self._stopping.wait(EVERY_SECONDS):
            self._try(self.step)

    def _deliver(self, channel: str) -> None:
        try:
            self._try(lambda: self.delivery.deliver(channel))
        finally:
            with self._lock:
                self._sending.pop(channel, None)

    @staticmethod
    def _try(work: Callable[[], None]) -> None:
        try:
            work()
        except CarrelError as error:
            log.warning("notifications: %s", error)
        except Exception:
            # A bug must not end the notifications of all users.
            log.exception("notifications failed")
