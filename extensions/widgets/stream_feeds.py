"""Feeds: one thread reads a stream of the service, another updates the views.

Views of the same thing share a feed, so that running a cell again opens no second stream.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Protocol

from pydantic import JsonValue

MERGE_SECONDS = 0.05
"""Changes within this time are sent together; the first one is sent at once."""
HEARTBEAT_SECONDS = 1.5
"""Interval at which a view learns that its kernel is alive; a view waits 4 s for it."""

Snapshot = dict[str, JsonValue]
Listener = Callable[[Snapshot], None]
_log = logging.getLogger(__name__)


class FedState(Protocol):
    """What a feed knows; ``follow`` reads the stream in a thread of its own."""

    def follow(self, changed: Callable[[], None]) -> None:
        """Read until nothing more can come; call ``changed`` after each change."""

    def snapshot(self) -> Snapshot:
        """Return all that views show, as JSON; called from another thread than ``follow``."""


class StreamFeed:
    """Passes the newest snapshot to its listeners, at once and after every change."""

    def __init__(self, state: FedState) -> None:
        self.state = state
        self._listeners: list[Listener] = []
        self._lock = threading.Lock()
        self._news = threading.Event()
        self.ended = threading.Event()
        """Set once the last change has been published."""
        self._done = False

    def start(self) -> None:
        for work in (self._read, self._publish):
            threading.Thread(target=work, name="carrel-feed", daemon=True).start()

    def listen(self, listener: Listener) -> None:
        """Add a listener; it gets the current snapshot before this returns."""
        with self._lock:
            self._listeners.append(listener)
            listener(self.state.snapshot())

    def leave(self, listener: Listener) -> None:
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def _read(self) -> None:
        try:
            self.state.follow(self._news.set)
        finally:
            self._done = True
            self._news.set()

    def _publish(self) -> None:
        while True:
            self._news.wait()
            self._news.clear()
            last = self._done
            with self._lock:
                snapshot = self.state.snapshot()
                for listener in self._listeners:
                    try:
                        listener(snapshot)
                    except (OSError, RuntimeError) as error:
                        # A closed frontend must not stop updates of the others.
                        _log.debug("a view could not be updated: %s", error)
            if last:
                self.ended.set()
                return
            self.ended.wait(MERGE_SECONDS)


class StreamFeeds:
    """All feeds of this kernel by key; a feed that has ended is started again."""

    def __init__(self) -> None:
        self._feeds: dict[str, StreamFeed] = {}
        self._lock = threading.Lock()

    def of(self, key: str, make: Callable[[], FedState]) -> StreamFeed:
        with self._lock:
            feed = self._feeds.get(key)
            if feed is None or feed.ended.is_set():
                feed = self._feeds[key] = StreamFeed(make())
                feed.start()
            return feed


class Heartbeat:
    """Calls its callbacks at an interval: a view without it counts as detached."""

    def __init__(self, seconds: float = HEARTBEAT_SECONDS) -> None:
        self._seconds = seconds
        self._callbacks: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._never = threading.Event()

    def add(self, callback: Callable[[], None]) -> None:
        with self._lock:
            self._callbacks.append(callback)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="carrel-heartbeat", daemon=True
                )
                self._thread.start()

    def remove(self, callback: Callable[[], None]) -> None:
        with self._lock:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

    def _run(self) -> None:
        while not self._never.wait(self._seconds):
            with self._lock:
                callbacks = list(self._callbacks)
            for callback in callbacks:
                try:
                    callback()
                except (OSError, RuntimeError) as error:
                    _log.debug("a view could not be updated: %s", error)


FEEDS = StreamFeeds()
HEARTBEAT = Heartbeat()
