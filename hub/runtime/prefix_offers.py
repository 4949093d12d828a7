"""Offer prefixes to the attempts of jobs; the courses of the service provide them."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from ..errors import CarrelError
from ..interfaces.job_reuse import SharedPrefixes
from ..records.leases import LeaseRecord
from ..records.requests import RequestRecord

log = logging.getLogger(__name__)


@dataclass(slots=True)
class PrefixOffers:
    """Attributes:
    provider: None in a service without courses.
    """

    provider: SharedPrefixes | None = None

    def offer(self, request: RequestRecord, lease: LeaseRecord, folder: Path) -> None:
        """Offer an attempt the prefix that fits, if there is one; never fails.

        A job without a prefix runs all its cells.
        """
        if self.provider is None:
            return
        try:
            self.provider.offer(request, lease, folder)
        except (CarrelError, OSError, ValueError) as error:
            log.warning("%s: no prefix is offered: %s", lease.id, error)

    def used(self, request_id: str, epoch: int) -> None:
        """Record that an attempt has begun with its prefix."""
        if self.provider is not None:
            self.provider.used(request_id, epoch)

    def ended(self, request: RequestRecord, folder: Path) -> None:
        """Delete what an attempt that has ended leaves of a prefix; never fails."""
        if self.provider is None:
            return
        try:
            self.provider.ended(request, folder)
        except (CarrelError, OSError) as error:
            log.warning("%s: files of a prefix are left: %s", request.id, error)
