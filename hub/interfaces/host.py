"""The port to the host setup of a backend: its network, its leftovers and its diagnostics.

``carrel up`` prepares the host before it starts the three processes, ``carrel down`` cleans up
after them. Implementations are found by entry point (group ``carrel.host_setups``):
``factory(BackendSettings)``. The local backend has none, because it needs no preparation and finds
its leftovers in the process table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..records.diagnostics import Finding
from ..scheduling.model.snapshot import Group


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """The addresses of the installation's networks.

    Attributes:
        subnets: the address range for the networks of the installation.
        internal_ip: the address of this host in that range, which containers can reach.
    """

    subnets: str
    internal_ip: str


class QuotaMirror(Protocol):
    """Accounts of a cluster that mirror the quota tree (entry point ``carrel.quota_mirrors``)."""

    def sync(self, groups: Sequence[Group], *, dry_run: bool) -> tuple[str, ...]:
        """Create and change accounts; return the calls, which a dry run does not make.

        Raises:
            BackendFailed: the cluster refused a call; those before it were made.
            Conflict: the cluster keeps no accounts.
            Unavailable: the cluster does not answer.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideUse:
    """Devices that jobs from outside Carrel had in a span of time.

    Attributes:
        user, account: as the cluster names them.
        jobs: how many had devices in the span.
        device_seconds: within the span.
    """

    user: str
    account: str
    jobs: int
    device_seconds: float


class ClusterUsage(Protocol):
    """What others use on a cluster (entry point ``carrel.cluster_usage``)."""

    def outside(self, since: float, until: float) -> tuple[OutsideUse, ...]:
        """Return the use of devices by jobs from outside Carrel, the largest first.

        Raises:
            Conflict: the cluster keeps no accounts.
            Unavailable: the cluster does not answer.
        """


class HostSetup(Protocol):
    """Host operations of ``carrel up``, ``carrel down`` and ``carrel doctor`` for one backend."""

    def prepare(self, subnets: str) -> Addresses:
        """Create the network of the installation and return its addresses.

        Args:
            subnets: the address range of an earlier start; empty to choose one.

        Raises:
            Unavailable: the engine does not answer.
        """

    def running(self) -> tuple[str, ...]:
        """Return the ids of the leases that have running processes.

        Raises:
            Unavailable: the engine does not answer.
        """

    def stop(self, lease_ids: Iterable[str]) -> tuple[str, ...]:
        """Stop these leases and return the ids of those that still have running processes.

        Raises:
            Unavailable: the engine does not answer.
        """

    def clear(self) -> None:
        """Remove the leftovers of a stopped installation.

        Raises:
            Unavailable: the engine does not answer.
        """

    def clear_node(self, node: str) -> None:
        """Remove the leftovers on one node, on which nothing runs.

        Raises:
            BackendFailed: the engine refused.
            Unavailable: the engine does not answer.
        """

    def findings(self) -> Iterable[Finding]:
        """Yield the diagnostics of the engine, for ``carrel doctor``."""
