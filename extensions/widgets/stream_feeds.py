"""Feeds: one thread reads a stream of the service, another tells the views what is new.

Views of the same thing share a feed, so that running a cell again opens no second stream.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Protocol

from pydantic import JsonValue

PACE_SECONDS = 0.05
"""The first news goes out at once, what follows within this time goes out together."""
BEAT_SECONDS = 1.5
"""How often a view hears that its kernel is alive; views of an idle kernel wait for 4 s."""

Snapshot = dict[str, JsonValue]
Listener = Callable[[Snapshot], None]
_log = logging.getLogger(__name__)


class FedState(Protocol):
    """What a feed knows; ``follow`` reads the stream in a thread of its own."""

    def follow(self, told: Callable[[], None]) -> None:
        """Return when there is nothing more to come; call ``told`` after each change."""

    def snapshot(self) -> Snapshot:
        """All that views show, as JSON. Called from another thread than ``follow``."""


class StreamFeed:
    """Tells its listeners the newest snapshot, at once and after every change."""

    def __init__(self, story: FedState) -> None:
        self._story = story
        self._listeners: list[Listener] = []
        self._lock = threading.Lock()
        self._news = threading.Event()
        self.ended = threading.Event()
        """Set once the last change has been told."""
        self._done = False

    def start(self) -> None:
        for work in (self._read, self._tell):
            threading.Thread(target=work, name="carrel-feed", daemon=True).start()

    def listen(self, listener: Listener) -> None:
        """``listener`` hears the present snapshot before this returns."""
        with self._lock:
            self._listeners.append(listener)
            listener(self._story.snapshot())

    def leave(self, listener: Listener) -> None:
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def _read(self) -> None:
        try:
            self._story.follow(self._news.set)
        finally:
            self._done = True
            self._news.set()

    def _tell(self) -> None:
        while True:
            self._news.wait()
            self._news.clear()
            last = self._done
            with self._lock:
                told = self._story.snapshot()
                for listener in self._listeners:
                    try:
                        listener(told)
                    except (OSError, RuntimeError) as error:
                        # One frontend that went away must not silence the others.
                        _log.debug("a view could not be told: %s", error)
            if last:
                self.ended.set()
                return
            self.ended.wait(PACE_SECONDS)


class StreamFeeds:
    """All feeds of this kernel by what they are about; one that has ended is begun anew."""

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


class FeedPulse:
    """Calls everybody again and again from one thread: whoever hears nothing is detached."""

    def __init__(self, seconds: float = BEAT_SECONDS) -> None:
        self._seconds = seconds
        self._beats: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._never = threading.Event()

    def add(self, beat: Callable[[], None]) -> None:
        with self._lock:
            self._beats.append(beat)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="carrel-heart", daemon=True)
                self._thread.start()

    def remove(self, beat: Callable[[], None]) -> None:
        with self._lock:
            if beat in self._beats:
                self._beats.remove(beat)

    def _run(self) -> None:
        while not self._never.wait(self._seconds):
            with self._lock:
                beats = list(self._beats)
            for beat in beats:
                try:
                    beat()
                except (OSError, RuntimeError) as error:
                    _log.debug("a view did not hear the beat: %s", error)


FEEDS = StreamFeeds()
HEART = FeedPulse()
