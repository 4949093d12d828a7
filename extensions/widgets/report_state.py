"""The values that a job reports, for a view: curves that are read while the job runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from ...hub.client import Client
from ...hub.errors import CarrelError
from ...hub.results.report_curves import report_curves
from ...hub.schemas import RequestOut

REPORT_SECONDS = 2.0
"""A report causes no event: the values are read at this interval while the job runs."""
POINTS = 200
"""The most points of a curve."""
_SHARE = 10
"""The pause is at least as many times as long as the reading took."""
_LAST_SECONDS = 10.0


class ReportReader:
    """Reads what a job has reported, in a thread of its own."""

    def __init__(self, client: Client, request_id: str) -> None:
        self._client = client
        self._id = request_id
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._runs = False
        self.curves: Sequence[dict[str, Any]] = ()
        """Curves, and names with a single value, as a view draws them."""
        self.compilations: Sequence[dict[str, Any]] = ()
        """Functions that the job has accelerated."""

    def follow(self, request: RequestOut, changed: Callable[[], None]) -> None:
        """Read while the job runs; the trials of a sweep report for themselves."""
        self._runs = request.state == "running" and request.sweep is None
        if self._runs and self._thread is None:
            self._thread = threading.Thread(
                target=self._read_on, args=(changed,), name="carrel-reports", daemon=True
            )
            self._thread.start()

    def finish(self, request: RequestOut | None) -> None:
        """Read the values of a job that has ended."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(timeout=_LAST_SECONDS)
        if request is not None and request.lease is not None and request.sweep is None:
            self._read()

    def _read_on(self, changed: Callable[[], None]) -> None:
        while not self._ended.is_set():
            began = time.monotonic()
            if self._runs and self._read():
                changed()
            self._ended.wait(max(REPORT_SECONDS, _SHARE * (time.monotonic() - began)))

    def _read(self) -> bool:
        """Return whether there is something new; what cannot be read now is read later."""
        try:
            found = self._client.reports(self._id, points=POINTS)
        except CarrelError:
            return False
        before = self.curves, self.compilations
        self.curves = [asdict(each) for each in report_curves(found)]
        self.compilations = [each.model_dump(mode="json") for each in found.compilations]
        return (self.curves, self.compilations) != before
