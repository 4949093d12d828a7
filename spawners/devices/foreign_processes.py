"""Mark devices as busy that are in use by processes outside Carrel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import psutil

from ...hub.scheduling.model.snapshot import Device, Health
from ..processes import lease_processes
from .nvml import DetectedDevice


class ForeignProcesses:
    """Check the processes on this machine's devices, repeatedly."""

    def __init__(self) -> None:
        self._unseen: frozenset[int] = frozenset()

    def marked(self, found: Iterable[DetectedDevice]) -> tuple[Device, ...]:
        """Return the devices; those with a foreign process are busy."""
        known = tuple(found)
        foreign = self._among({pid for each in known for pid in each.pids})
        return tuple(_mark_busy(each, foreign) for each in known)

    def _among(self, pids: set[int]) -> dict[int, str]:
        """Return the pids that belong to no lease, with their process names.

        A pid that cannot be found has just ended, or belongs to another pid namespace: it counts
        the second time that it is seen.
        """
        unseen: set[int] = set()
        foreign: dict[int, str] = {}
        for pid in sorted(pids):
            try:
                process = psutil.Process(pid)
                if lease_processes.lease_of(process) is None:
                    foreign[pid] = process.name()
            except psutil.NoSuchProcess:
                unseen.add(pid)
                if pid in self._unseen:
                    foreign[pid] = "not visible from here"
        self._unseen = frozenset(unseen)
        return foreign


def _mark_busy(found: DetectedDevice, foreign: Mapping[int, str]) -> Device:
    here = [f"pid {pid}, {foreign[pid]}" for pid in found.pids if pid in foreign]
    if found.device.health is not Health.OK or not here:
        return found.device
    return replace(
        found.device,
        health=Health.BUSY,
        why=f"in use by a process that Carrel did not start ({'; '.join(here)})",
    )
