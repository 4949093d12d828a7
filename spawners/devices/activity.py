"""Measure the activity of leases and devices: CPU time of processes, utilization of devices.

CPU time is summed by process, and a process counts the time of children that it has waited for: the
total does not fall when a process ends.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import psutil

from ...hub.interfaces.devices import NO_SIGNALS, DeviceSignals
from ...hub.messages.units import memory
from ...hub.records.leases import Handle
from ...hub.records.utilization import DeviceReading
from ...hub.scheduling.model.idleness import ActivityLevel, DeviceActivity
from ...hub.scheduling.model.snapshot import Device
from ..processes.lease_processes import handle_of
from .environment import readable
from .inventory import DetectedDevice
from .simulated import SimulatedFault, fault_of

MOST_THREADS: Final = 256
"""Threads of a lease whose waits are read; others are left out, as reading them takes time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuTimes:
    """CPU seconds of one process: its own, and those of the children that it has waited for."""

    own: float
    children: float


def cpu_seconds_between(before: Mapping[Handle, CpuTimes], now: Mapping[Handle, CpuTimes]) -> float:
    """Return the CPU seconds that a changing set of processes used between two readings.

    A new process counts from its start.
    """
    nothing = CpuTimes(own=0.0, children=0.0)
    own = sum(times.own - before.get(handle, nothing).own for handle, times in now.items())
    waited_for = sum(
        times.children - before.get(handle, nothing).children for handle, times in now.items()
    )
    gone = sum(times.own + times.children for handle, times in before.items() if handle not in now)
    return max(0.0, own) + max(0.0, waited_for - gone)


class ProcessCpuMeter:
    """Sums the CPU seconds of leases over successive readings; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: dict[str, dict[Handle, CpuTimes]] = {}
        self._total: dict[str, float] = {}

    def read(
        self, lease_id: str, members: Iterable[psutil.Process], server: Handle | None
    ) -> float:
        """Return the CPU seconds of a lease since its first reading.

        Args:
            server: the process that serves a session; only its descendants count.
        """
        now: dict[Handle, CpuTimes] = {}
        for process in members:
            try:
                handle, times = handle_of(process), process.cpu_times()
            except psutil.Error:  # it ended meanwhile
                continue
            own = (
                0.0
                if server is not None and handle.pid == server.pid
                else times.user + times.system
            )
            now[handle] = CpuTimes(own=own, children=times.children_user + times.children_system)
        with self._lock:
            before = self._last.get(lease_id)
            used = 0.0 if before is None else cpu_seconds_between(before, now)
            self._last[lease_id] = now
            self._total[lease_id] = self._total.get(lease_id, 0.0) + used
            return self._total[lease_id]

    def forget_others(self, leases: Collection[str]) -> None:
        """Forget all leases but these."""
        with self._lock:
            for by_lease in (self._last, self._total):
                for lease_id in set(by_lease) - set(leases):
                    del by_lease[lease_id]


class RunDelayMeter:
    """Sums the time that threads of leases have waited for a core, over successive readings.

    The kernel counts it for each thread: the second value of ``/proc/PID/task/TID/schedstat`` is
    its nanoseconds on a run queue (sched-stats in the kernel's documentation). What a thread waits
    between its last reading and its end is lost. Safe to use from any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: dict[str, dict[tuple[int, int], int]] = {}
        self._total: dict[str, float] = {}

    def read(self, lease_id: str, members: Iterable[psutil.Process]) -> float | None:
        """Return the seconds of a lease since its first reading; None on a kernel without them."""
        now: dict[tuple[int, int], int] = {}
        for process in members:
            now.update(_run_delays(process.pid, MOST_THREADS - len(now)))
        if not now:
            return None
        with self._lock:
            before = self._last.get(lease_id)
            waited = 0
            if before is not None:
                # A new thread, or one with the number of another, counts from its start.
                waited = sum(
                    value - last if (last := before.get(key, 0)) <= value else value
                    for key, value in now.items()
                )
            self._last[lease_id] = now
            self._total[lease_id] = self._total.get(lease_id, 0.0) + waited / 1e9
            return self._total[lease_id]

    def forget_others(self, leases: Collection[str]) -> None:
        """Forget all leases but these."""
        with self._lock:
            for by_lease in (self._last, self._total):
                for lease_id in set(by_lease) - set(leases):
                    del by_lease[lease_id]


def _run_delays(pid: int, most: int) -> dict[tuple[int, int], int]:
    """Return the nanoseconds on the run queue of at most so many threads of a process."""
    found: dict[tuple[int, int], int] = {}
    tasks = Path(f"/proc/{pid}/task")
    with suppress(OSError):
        for name in os.listdir(tasks)[: max(0, most)]:
            with suppress(OSError, ValueError, IndexError):
                found[pid, int(name)] = int((tasks / name / "schedstat").read_text().split()[1])
    return found


def device_activity(found: DetectedDevice) -> DeviceActivity:
    """Return the activity of a real device.

    A process that only holds memory is not activity: a kernel holds memory long after its last
    cell. A device that the driver cannot measure is quiet only while no process uses it.
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


def device_readings(found: Iterable[DetectedDevice]) -> dict[str, DeviceReading]:
    """Return how much each real device is used, by id."""
    return {
        detected.device.id: DeviceReading(
            percent=detected.mean_utilization, used_bytes=detected.used_bytes
        )
        for detected in found
    }


def device_signals(found: Iterable[DetectedDevice]) -> dict[str, DeviceSignals]:
    """Return the condition of each real device, by id."""
    return {
        detected.device.id: replace(detected.signals, utilization=detected.mean_utilization)
        for detected in found
    }


def simulated_signals(
    devices: Iterable[Device], faults: Mapping[str, SimulatedFault]
) -> dict[str, DeviceSignals]:
    """Return the condition of the simulated devices that have a fault."""
    found = {device.id: fault_of(device.id, device.index, faults).signals for device in devices}
    return {name: signals for name, signals in found.items() if signals != NO_SIGNALS}


def resident_bytes(members: Iterable[psutil.Process]) -> int:
    """Return the resident memory of processes; memory that they share counts for each."""
    total = 0
    for process in members:
        with suppress(psutil.Error):
            total += process.memory_info().rss
    return total


def simulated_activity(device: Device) -> DeviceActivity:
    """Return the activity of a simulated device, which cannot be measured."""
    return DeviceActivity(name=readable(device), use=ActivityLevel.NOT_MEASURED)
