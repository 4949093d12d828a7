"""What an engine needs on this machine before and after the three processes run.

Found by entry point (group ``carrel.grounds``): ``factory(GroundSettings)``. The local engine
has none: it needs nothing, and what it started is found among the processes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Attributes:
    subnets: the range that the installation's networks are cut from.
    internal_ip: the address of this host in it, which containers reach.
    """

    subnets: str
    internal_ip: str


class Verdict(StrEnum):
    FINE = "fine"
    WARNING = "warning"
    """It works, with less than it could have, or less safely."""
    MISSING = "missing"
    """Carrel does not work, or not safely, until it is mended."""
    UNKNOWN = "unknown"
    """It could not be found out, and the sentence says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What ``carrel doctor`` found about one thing.

    Attributes:
        what: a sentence.
        mend: how to mend it; empty where nothing is to be mended.
    """

    subject: str
    verdict: Verdict
    what: str
    mend: str = ""


class Ground(Protocol):
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
