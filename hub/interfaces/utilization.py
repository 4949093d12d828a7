"""The port to stored use of CPU, memory and devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

from ..records.utilization import (
    AttemptUtilization,
    HeldDevices,
    UtilizationSeries,
    UtilizationSummary,
)

T = TypeVar("T")


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

    def fold_held_devices(
        self, since: float, until: float, fold: Callable[[Iterator[HeldDevices]], T]
    ) -> T:
        """Return what ``fold`` makes of all that was held at any moment of a period.

        It gets what was held one by one with its series, in the order of the grants, so that only
        a few series are in memory at once; without a series it is left out. ``fold`` runs in the
        read transaction: it does not use the store, and does not keep the iterator.
        """
