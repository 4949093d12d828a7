"""Devices on which a process works that Carrel did not start: not offered, and it is said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import psutil

from ...hub.scheduling.model.snapshot import Device, Health
from ..processes import lease_processes
from .nvml import DetectedDevice


class ForeignProcesses:
    """Looks at the processes of this machine's devices, again and again."""

    def __init__(self) -> None:
        self._unseen: frozenset[int] = frozenset()

    def marked(self, found: Iterable[DetectedDevice]) -> tuple[Device, ...]:
        """The devices; those with a stranger on them are busy."""
        known = tuple(found)
        strangers = self._among({pid for each in known for pid in each.pids})
        return tuple(_with_strangers(each, strangers) for each in known)

    def _among(self, pids: set[int]) -> dict[int, str]:
        """Of these processes those that belong to no lease, with their names.

        A pid that is not to be seen has just ended, or lives behind a namespace; the second
        time it counts.
        """
        unseen: set[int] = set()
        strangers: dict[int, str] = {}
        for pid in sorted(pids):
            try:
                process = psutil.Process(pid)
                if lease_processes.lease_of(process) is None:
                    strangers[pid] = process.name()
            except psutil.NoSuchProcess:
                unseen.add(pid)
                if pid in self._unseen:
                    strangers[pid] = "not visible from here"
        self._unseen = frozenset(unseen)
        return strangers


def _with_strangers(found: DetectedDevice, strangers: Mapping[int, str]) -> Device:
    here = [f"pid {pid}, {strangers[pid]}" for pid in found.pids if pid in strangers]
    if found.device.health is not Health.OK or not here:
        return found.device
    return replace(
        found.device,
        health=Health.BUSY,
        why=f"in use by a process that Carrel did not start ({'; '.join(here)})",
    )
