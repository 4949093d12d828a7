"""The port to stored use of CPU, memory and devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ..records.utilization import AttemptUtilization, UtilizationSeries, UtilizationSummary


class UtilizationStore(Protocol):
    """The part of the store for the use of resources; see ``hub.interfaces.store``."""

    def put_utilization(self, found: Mapping[str, UtilizationSeries]) -> None:
        """Create or replace the series of these leases; unknown leases are left out."""

    def utilization(self, request_id: str) -> tuple[AttemptUtilization, ...]:
        """Return the series of the attempts of a request, the first attempt first."""

    def utilization_of(self, lease_ids: Sequence[str]) -> Mapping[str, UtilizationSeries]:
        """Return the series of these leases; leases without one are missing."""

    def utilization_summaries(self, lease_ids: Sequence[str]) -> Mapping[str, UtilizationSummary]:
        """Return the summaries of these leases, without their points."""
