"""The port to prefixes: cells of a notebook that a course has run for the jobs of its members."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from ..records.leases import LeaseRecord
from ..records.requests import RequestRecord


class SharedPrefixes(Protocol):
    """Finds the prefix with which a job may begin."""

    def offer(self, request: RequestRecord, lease: LeaseRecord, folder: Path) -> bool:
        """Copy a prefix that fits into the folder of an attempt; return whether there was one.

        Raises:
            OSError: the files cannot be copied.
            CarrelError: of the course.
        """

    def used(self, request_id: str, epoch: int) -> None:
        """Record that an attempt has begun with its prefix; safe to repeat."""
