"""Mark devices that processes outside of Carrel use as busy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import psutil

from ...hub.scheduling.model.snapshot import Device, Health
from ..processes import lease_processes
from .inventory import DetectedDevice


class ForeignProcesses:
    """Detects processes on this machine's devices that belong to no lease."""

    def __init__(self) -> None:
        self._unseen: frozenset[int] = frozenset()

    def with_busy_marked(self, found: Iterable[DetectedDevice]) -> tuple[Device, ...]:
        """Return the devices; a device with a foreign process is busy."""
        devices = tuple(found)
        foreign = self._among({pid for detected in devices for pid in detected.pids})
        return tuple(_mark_busy(detected, foreign) for detected in devices)

    def _among(self, pids: set[int]) -> dict[int, str]:
        """Return the pids that belong to no lease, with their process names.

        A pid without a process has just ended, or belongs to another pid namespace: it counts from
        the second time on.
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
