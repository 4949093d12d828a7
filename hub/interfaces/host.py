"""What an engine needs on this machine before and after the three processes run.

Found by entry point (group ``carrel.host_setups``): ``factory(GroundSettings)``. The local engine
has none: it needs nothing, and what it started is found among the processes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from ..records.diagnostics import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Attributes:
    subnets: the range that the installation's networks are cut from.
    internal_ip: the address of this host in it, which containers reach.
    """

    subnets: str
    internal_ip: str


class HostSetup(Protocol):
    """One engine, as ``carrel up``, ``carrel down`` and ``carrel doctor`` see it."""

    def prepare(self, subnets: str) -> Addresses:
        """Make the installation's own network, out of ``subnets`` if those were chosen before.

        Raises:
            Unavailable: the engine does not answer.
        """

    def running(self) -> tuple[str, ...]:
        """The leases on which something of this installation runs.

        Raises:
            Unavailable: the engine does not answer.
        """

    def stop(self, lease_ids: Iterable[str]) -> tuple[str, ...]:
        """End what runs on these leases; returns those of which something is left.

        Raises:
            Unavailable: the engine does not answer.
        """

    def clear(self) -> None:
        """Take away what is left of an installation in which nothing runs.

        Raises:
            Unavailable: the engine does not answer.
        """

    def findings(self) -> Iterable[Finding]:
        """What there is to say about the engine, one thing after the other."""
