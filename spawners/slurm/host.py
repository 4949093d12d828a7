"""Prepare and clear a Slurm cluster for ``carrel up``, ``down`` and ``doctor``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ...hub.errors import BackendFailed
from ...hub.interfaces.backend_settings import BackendSettings
from ...hub.interfaces.host import Addresses
from ...hub.records.diagnostics import Finding
from .client import SlurmClient, options_of
from .container_images import with_default_image
from .doctor import SlurmDoctor
from .job_states import SlurmJob

_STEPS: Final = (("INT", 1.5), ("TERM", 1.5), ("KILL", 5.0))
_LOCALHOST: Final = "127.0.0.1"


def create(settings: BackendSettings) -> SlurmHostSetup:
    """Entry point (group ``carrel.host_setups``)."""
    return SlurmHostSetup(settings)


class SlurmHostSetup:
    """Finds and ends the jobs of an installation; a cluster needs no other preparation."""

    def __init__(self, settings: BackendSettings) -> None:
        self._settings = settings
        self._options = options_of(settings)
        self._client = SlurmClient(self._options.conf, fresh_seconds=0.0)

    def prepare(self, subnets: str) -> Addresses:
        wanted, nodes = self._options.partition, self._client.nodes()
        if wanted and not any(node.is_in(wanted) for node in nodes):
            known = sorted({name for node in nodes for name in node.partitions})
            raise BackendFailed(
                f"The cluster has no node in a partition {wanted!r}.",
                accepted="Set partition below [slurm] in carrel.toml to one of: "
                f"{', '.join(known)}.",
            )
        return Addresses(subnets="", internal_ip=self._options.address or _LOCALHOST)

    def running(self) -> tuple[str, ...]:
        return tuple(sorted(self._live()))

    def stop(self, lease_ids: Iterable[str]) -> tuple[str, ...]:
        stopping = frozenset(lease_ids)

        def live() -> list[SlurmJob]:
            return [job for lease, job in self._live().items() if lease in stopping]

        if self._client.end(live, _STEPS):
            return ()
        return tuple(sorted(stopping & self._live().keys()))

    def clear(self) -> None:
        """Do nothing: an ended job leaves nothing in Slurm but its accounts."""

    def clear_node(self, node: str) -> None:
        """Do nothing: nodes belong to Slurm."""

    def findings(self) -> Iterator[Finding]:
        options = with_default_image(self._options)
        doctor = SlurmDoctor(client=self._client, settings=self._settings, options=options)
        yield from doctor.findings()

    def _live(self) -> dict[str, SlurmJob]:
        return self._client.live_jobs(self._settings.installation)
