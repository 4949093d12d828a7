"""Measure the devices of a job from inside, since Slurm does not say what they do.

A thread of the runner looks every few seconds, and writes what it sees to a file in the folder of
the attempt, which the service reads. It is a daemon: a driver that hangs makes the file old.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from ...hub.attempts.spec import member_folder
from ...hub.files.safe_fs import write_into
from ...hub.interfaces.devices import DriverDevice
from ...hub.records.utilization import DeviceReading
from .job_states import SlurmJob
from .session_meter import listed_devices

FILE: Final = "devices.json"
EVERY_SECONDS: Final = 10.0
VALID_SECONDS: Final = 60.0
VISIBLE: Final = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")
"""Variables in which Slurm names the devices of a job: by index, or by id (``AutoDetect``)."""

log = logging.getLogger(__name__)


def start(folder: Path) -> None:
    """Entry point (group ``carrel.job_meters``)."""
    threading.Thread(target=_run, args=(folder,), name="device-meter", daemon=True).start()


def _run(folder: Path) -> None:
    while True:
        try:
            measure(folder, os.environ, listed_devices, time.time)
        except Exception as error:  # the code of a plug-in may raise anything
            log.warning("The devices of this job cannot be measured: %s", error)
        time.sleep(EVERY_SECONDS)


def measure(
    folder: Path,
    environment: Mapping[str, str],
    listed: Callable[[], Iterable[DriverDevice]],
    clock: Callable[[], float],
) -> None:
    """Write the use of the devices of this job; may block in a driver."""
    devices = [
        {"percent": _percent(device), "used_bytes": device.used_bytes}
        for device in own_devices(environment, listed())
    ]
    write_into(folder, FILE, json.dumps({"at": clock(), "devices": devices}))


def own_devices(
    environment: Mapping[str, str], listed: Iterable[DriverDevice]
) -> list[DriverDevice]:
    """Return the devices that Slurm has given to this job, also those that it does not use."""
    visible = next((environment[name] for name in VISIBLE if environment.get(name)), "")
    names = [name.strip() for name in visible.split(",") if name.strip()]
    found = list(listed)
    return [each for name in names for each in found if name in (str(each.index), each.id)]


def _percent(device: DriverDevice) -> float | None:
    mean = device.mean_utilization
    return device.utilization if mean is None else mean


def read_devices(job: SlurmJob, now: float) -> dict[str, DeviceReading]:
    """Return what a running job has measured, by device of its lease.

    Slurm chooses the devices, and the lease names others of the same type: a reading stands for one
    of them, and all together for all.
    """
    if job.mark is None or not job.log:
        return {}
    folder, ranks = Path(job.log).parent, sorted(job.mark.members) or [0]
    found = [each for rank in ranks for each in _readings(member_folder(folder, rank), now)]
    return dict(zip(job.mark.devices, found, strict=False))


def _readings(folder: Path, now: float) -> Sequence[DeviceReading]:
    try:
        found = json.loads((folder / FILE).read_text())
        if abs(now - found["at"]) > VALID_SECONDS:
            return ()
        return [
            DeviceReading(
                percent=None if each["percent"] is None else float(each["percent"]),
                used_bytes=int(each["used_bytes"]),
            )
            for each in found["devices"]
        ]
    except (OSError, ValueError, LookupError, TypeError):
        return ()  # none yet, or not written by the meter
