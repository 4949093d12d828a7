"""What leases and devices did lately: CPU time of processes, and the driver's word on devices.

CPU time is added up by process, so that one that ends takes nothing away: what a process used
before its parent waited for it is in the parent's account of its children by then.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import psutil

from ...hub.messages.units import memory
from ...hub.records.leases import Handle
from ...hub.scheduling.model.idleness import ActivityLevel, DeviceActivity
from ...hub.scheduling.model.snapshot import Device
from ..processes.lease_processes import handle_of
from .environment import readable
from .nvml import DetectedDevice


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """CPU seconds of one process: its own, and of those children that it has waited for."""

    own: float
    children: float


def spent_between(before: Mapping[Handle, Spent], now: Mapping[Handle, Spent]) -> float:
    """CPU seconds that a changing set of processes used; new ones count from their birth."""
    nothing = Spent(own=0.0, children=0.0)
    own = sum(each.own - before.get(who, nothing).own for who, each in now.items())
    waited_for = sum(each.children - before.get(who, nothing).children for who, each in now.items())
    gone = sum(each.own + each.children for who, each in before.items() if who not in now)
    return max(0.0, own) + max(0.0, waited_for - gone)


class ProcessCpuMeter:
    """Counts on from one look to the next, lease by lease; usable from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: dict[str, dict[Handle, Spent]] = {}
        self._total: dict[str, float] = {}

    def read(
        self, lease_id: str, members: Iterable[psutil.Process], server: Handle | None
    ) -> float:
        """CPU seconds since the first look at this lease.

        Args:
            server: the process that serves a session; only what it started is counted.
        """
        now: dict[Handle, Spent] = {}
        for process in members:
            try:
                who, times = handle_of(process), process.cpu_times()
            except psutil.Error:  # it ended while we looked
                continue
            own = 0.0 if server is not None and who.pid == server.pid else times.user + times.system
            now[who] = Spent(own=own, children=times.children_user + times.children_system)
        with self._lock:
            before = self._last.get(lease_id)
            used = 0.0 if before is None else spent_between(before, now)
            self._last[lease_id] = now
            self._total[lease_id] = self._total.get(lease_id, 0.0) + used
            return self._total[lease_id]

    def forget_others(self, leases: Collection[str]) -> None:
        with self._lock:
            for known in (self._last, self._total):
                for lease_id in set(known) - set(leases):
                    del known[lease_id]


def use_of(found: DetectedDevice) -> DeviceActivity:
    """What the driver tells of a real device.

    A process that holds memory is no work: kernels hold it long after their last cell. Where
    the driver does not measure a device, nobody on it is proof that it does nothing.
    """
    if found.utilization is None:
        use = ActivityLevel.UNKNOWN if found.pids else ActivityLevel.QUIET
    else:
        use = ActivityLevel.WORKED if found.utilization else ActivityLevel.QUIET
    held = ""
    if found.pids:
        size = memory(found.used_bytes)
        number = len(found.pids)
        held = "1 process on it" if number == 1 else f"{number} processes on it"
        held += f", {size} of its memory in use" if size else ""
    return DeviceActivity(name=readable(found.device), use=use, detail=held)


def use_of_simulated(device: Device) -> DeviceActivity:
    return DeviceActivity(name=readable(device), use=ActivityLevel.NOT_MEASURED)
