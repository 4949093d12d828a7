"""Cache the newest kernel report of each running session."""

from __future__ import annotations

from collections.abc import Collection

from ..scheduling.model.idleness import KernelReport

VALID_SECONDS = 60.0
"""How long a report is valid; sessions report four times in this interval."""


class KernelReports:
    """The newest report of each request, with its time."""

    def __init__(self) -> None:
        self._reports: dict[str, tuple[KernelReport, float]] = {}

    def put(self, request_id: str, report: KernelReport, *, now: float) -> None:
        """Store the newest report of a session."""
        self._reports[request_id] = report, now

    def get(self, request_id: str, *, now: float) -> KernelReport | None:
        """Return the newest report; None if there is none or it is too old."""
        report, at = self._reports.get(request_id, (None, 0.0))
        return report if 0 <= now - at < VALID_SECONDS else None

    def keep_only(self, request_ids: Collection[str]) -> None:
        """Drop the reports of all other requests."""
        for request_id in set(self._reports) - set(request_ids):
            del self._reports[request_id]
