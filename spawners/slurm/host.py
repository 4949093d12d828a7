"""Prepare and clear a Slurm cluster for ``carrel up``, ``down`` and ``doctor``."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Final

from ...hub.errors import BackendFailed, Unavailable
from ...hub.interfaces.backend_settings import BackendSettings
from ...hub.interfaces.host import Addresses
from ...hub.records.diagnostics import Finding
from .client import SlurmClient
from .doctor import SlurmDoctor
from .job_states import SlurmJob, by_lease

_STEPS: Final = (("INT", 1.5), ("TERM", 1.5), ("KILL", 5.0))
_POLL_SECONDS: Final = 0.1
_LOCALHOST: Final = "127.0.0.1"


def create(settings: BackendSettings) -> SlurmHostSetup:
    """Entry point (group ``carrel.host_setups``)."""
    return SlurmHostSetup(settings)


class SlurmHostSetup:
    """Finds and ends the jobs of an installation; a cluster needs no other preparation."""

    def __init__(self, settings: BackendSettings) -> None:
        if settings.slurm is None:
            raise BackendFailed("The options of the Slurm engine are missing.")
        self._settings = settings
        self._options = settings.slurm
        self._client = SlurmClient(settings.slurm.conf, fresh_seconds=0.0)

    def prepare(self, subnets: str) -> Addresses:
        try:
            self._client.nodes()
        except BackendFailed as error:
            raise Unavailable(str(error)) from error
        return Addresses(subnets="", internal_ip=self._options.address or _LOCALHOST)

    def running(self) -> tuple[str, ...]:
        return tuple(sorted(self._live()))

    def stop(self, lease_ids: Iterable[str]) -> tuple[str, ...]:
        stopping = frozenset(lease_ids)
        left = self._live()
        for name, seconds in _STEPS:
            jobs = [job for lease, job in left.items() if lease in stopping]
            self._client.signal([job.id for job in jobs if job.is_pending])
            self._client.signal([job.id for job in jobs if not job.is_pending], name)
            deadline = time.monotonic() + seconds
            while stopping & left.keys() and time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)
                left = self._live()
            if not stopping & left.keys():
                return ()
        return tuple(sorted(stopping & left.keys()))

    def clear(self) -> None:
        """Do nothing: an ended job leaves nothing in Slurm but its accounts."""

    def clear_node(self, node: str) -> None:
        """Do nothing: nodes belong to Slurm."""

    def findings(self) -> Iterator[Finding]:
        doctor = SlurmDoctor(client=self._client, settings=self._settings, options=self._options)
        yield from doctor.findings()

    def _live(self) -> dict[str, SlurmJob]:
        """Return the jobs of this installation that have not ended, by lease or member.

        Raises:
            Unavailable: slurmctld does not answer.
        """
        try:
            jobs = by_lease(self._client.jobs(), self._settings.installation)
        except BackendFailed as error:
            raise Unavailable(str(error)) from error
        return {lease: job for lease, job in jobs.items() if not job.has_ended}
