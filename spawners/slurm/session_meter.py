"""Measure a session from inside, since Slurm does not say what devices and kernels do.

A thread looks every few seconds. It is a daemon: a driver that hangs stops neither the server nor
its end, and makes the measurement old, which counts as work.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import Final

import psutil

from ...hub.interfaces.devices import DriverDevice
from ...hub.interfaces.session_meter import SessionUse
from ...hub.scheduling.model.idleness import ActivityLevel
from ..devices.activity import ProcessCpuMeter
from ..devices.plugins import installed_plugins
from ..processes.lease_processes import handle_of

EVERY_SECONDS: Final = 5.0
VALID_SECONDS: Final = 30.0

log = logging.getLogger(__name__)


def create() -> ThreadedSessionMeter:
    """Entry point (group ``carrel.session_meters``); starts to measure."""
    made = ThreadedSessionMeter(psutil.Process())
    threading.Thread(target=made.run, name="session-meter", daemon=True).start()
    return made


class ThreadedSessionMeter:
    """Measures a server with all its descendants (``hub.interfaces.session_meter``)."""

    def __init__(
        self,
        server: psutil.Process,
        *,
        devices: Callable[[], Iterable[DriverDevice]] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._server = server
        self._handle = handle_of(server)
        self._devices = devices or listed_devices
        self._clock = clock
        self._cpu = ProcessCpuMeter()
        self._latest: tuple[SessionUse, float] | None = None

    def latest(self) -> SessionUse | None:
        found = self._latest
        if found is None or self._clock() - found[1] > VALID_SECONDS:
            return None
        return found[0]

    def run(self) -> None:
        """Measure again and again."""
        while True:
            try:
                self.measure()
            except Exception as error:  # the code of a plug-in may raise anything
                log.warning("This session cannot be measured: %s", error)
            time.sleep(EVERY_SECONDS)

    def measure(self) -> None:
        """Measure once; may block in a driver."""
        processes = [self._server, *self._server.children(recursive=True)]
        pids = {process.pid for process in processes}
        use = SessionUse(
            cpu_seconds=self._cpu.read("", processes, self._handle),
            devices=device_use(self._devices(), pids),
        )
        self._latest = use, self._clock()


def device_use(devices: Iterable[DriverDevice], pids: Iterable[int]) -> ActivityLevel:
    """Return what processes do on devices; a device on which none of them is does not count.

    A process that only holds memory does no work.
    """
    own = frozenset(pids)
    found = [device for device in devices if own & set(device.pids)]
    if any(device.utilization for device in found):
        return ActivityLevel.WORKED
    if any(device.utilization is None for device in found):
        return ActivityLevel.UNKNOWN
    return ActivityLevel.QUIET


def listed_devices() -> list[DriverDevice]:
    """Return the devices of this machine that its drivers list.

    Raises:
        BackendFailed: a plug-in could not be loaded.
    """
    return [
        device for each in installed_plugins() for device in each.loaded().list_devices().devices
    ]
