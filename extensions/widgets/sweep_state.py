"""The state of a sweep for a view: that of its job, and its trials, read when the job changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from ...hub.client import Client
from ...hub.errors import CarrelError
from ...hub.results.trial_view import TrialsView, trials_view
from .job_state import JobViewState
from .stream_feeds import Snapshot

TRIAL_SECONDS = 0.5
"""The trials are read at most so often."""
LIVE_SECONDS = 3.0
"""Interval of reading while a trial runs: what it reports causes no event."""
_SHARE = 10
"""The pause is at least as many times as long as the reading took."""


class SweepViewState:
    """Follows one sweep through the service."""

    def __init__(self, client: Client, request_id: str) -> None:
        self._client = client
        self._id = request_id
        self._job = JobViewState(client, request_id)
        self._news = threading.Event()
        self._ended = threading.Event()
        self._sweep: dict[str, Any] | None = None
        self._problem = ""

    def follow(self, changed: Callable[[], None]) -> None:
        reader = threading.Thread(
            target=self._read_trials, args=(changed,), name="carrel-trials", daemon=True
        )
        reader.start()

        def both() -> None:
            changed()
            self._news.set()

        try:
            self._job.follow(both)
        finally:
            self._ended.set()
            self._news.set()
            reader.join()

    def refresh(self) -> None:
        """Read the trials again: one that is stopped before its turn causes no event."""
        self._news.set()

    def snapshot(self) -> Snapshot:
        found = self._job.snapshot()
        problem = found["problem"] or self._problem
        return {**found, "sweep": self._sweep, "problem": problem}

    def _read_trials(self, changed: Callable[[], None]) -> None:
        last = False
        while not last:
            self._news.wait(LIVE_SECONDS if self._has_running() else None)
            self._news.clear()
            last, began = self._ended.is_set(), time.monotonic()
            try:
                self._sweep = asdict(_shown(trials_view(self._client.trials(self._id))))
                self._problem = ""
            except CarrelError as error:
                self._problem = str(error)
            changed()
            self._ended.wait(max(TRIAL_SECONDS, _SHARE * (time.monotonic() - began)))

    def _has_running(self) -> bool:
        return any(row["state"] == "running" for row in (self._sweep or {"rows": ()})["rows"])


def _shown(view: TrialsView) -> TrialsView:
    """Return the first part of the trials, with a sentence about the others."""
    if view.part.last == 1:
        return view
    left_out = f"The table shows {len(view.rows)} trials; the page and the CSV have all of them."
    return replace(view, notes=[*view.notes, left_out])
