"""Show the readings of a simulated node through NVML: pynvml, with the library that tests use."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from carrel.hub.interfaces.devices import DeviceSignals, ThrottleReason
from carrel.hub.scheduling.model.snapshot import Device
from carrel.spawners.devices import driver, kernel_log, nvidia
from carrel.spawners.devices.activity import device_signals
from carrel.spawners.devices.inventory import parse

from .simulated_node import Reading

SOURCE = Path(__file__).parents[2] / "fake_nvml" / "nvml.c"
_BITS: Mapping[str, int] = {
    ThrottleReason.HARDWARE_THERMAL: 0x40,
    ThrottleReason.POWER_BRAKE: 0x80,
    ThrottleReason.HARDWARE: 0x08,
    ThrottleReason.THERMAL: 0x20,
    ThrottleReason.POWER_CAP: 0x04,
    ThrottleReason.CHOSEN: 0x02,
}


class FakeDriver:
    """The library in this process; what it reports stands in variables, as in the tests."""

    def __init__(self, folder: Path) -> None:
        library = folder / "libnvidia-ml.so.1"
        flags = ["-shared", "-fPIC", "-O2", f"-Wl,-soname,{library.name}"]
        subprocess.run(["gcc", *flags, "-o", str(library), str(SOURCE)], check=True)
        # pynvml then finds the library of this name among those that are loaded.
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
        self._folder = folder
        self._log = folder / "kmsg"
        self._log.write_text("")
        self._looks = 0

    def read(
        self, readings: Sequence[Reading]
    ) -> tuple[tuple[Device, ...], dict[str, DeviceSignals], float]:
        """Return the devices, their signals, and the seconds of CPU that the query took."""
        from carrel.spawners.devices import nvml  # noqa: PLC0415  # after the library is loaded

        self._show(readings)
        began = time.process_time()
        report = nvml.report()
        spent = time.process_time() - began
        units = [asdict(device) for device in report.devices]
        text = json.dumps({"reason": report.reason, "installed": True, "units": units})
        found = parse(text, node="n1", driver="nvidia").found
        return tuple(each.device for each in found), device_signals(found), spent

    def process_seconds(self, readings: Sequence[Reading]) -> float:
        """Return the seconds of CPU of one query in a process of its own, as the service makes."""
        self._show(readings)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-P", "-m", driver.__name__, f"{nvidia.__name__}:NvidiaDevices"]
        environment = {**os.environ, "LD_LIBRARY_PATH": str(self._folder)}
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def _show(self, readings: Sequence[Reading]) -> None:
        os.environ["FAKE_NVML_GPUS"] = str(len(readings))
        signals = [each.signals for each in readings]

        def listed(name: str, of: Callable[[DeviceSignals], float | None]) -> None:
            values = [(index, of(each)) for index, each in enumerate(signals)]
            os.environ[f"FAKE_NVML_{name}"] = ",".join(
                f"{index}:{int(value)}" for index, value in values if value is not None
            )

        listed("USE", lambda s: s.utilization)
        listed("CLOCK", lambda s: s.clock_mhz)
        listed("CELSIUS", lambda s: s.temperature_celsius)
        listed("MILLIWATTS", lambda s: None if s.power_watts is None else 1000 * s.power_watts)
        listed(
            "POWER_LIMIT",
            lambda s: None if s.power_limit_watts is None else 1000 * s.power_limit_watts,
        )
        listed("LANES", lambda s: s.pcie_lanes)
        listed("REPLAYS", lambda s: s.pcie_replays)
        listed("CORRECTED", lambda s: s.corrected_errors)
        listed(
            "THROTTLE",
            lambda s: None if s.throttled is None else sum(_BITS[name] for name in s.throttled),
        )
        for name, chosen in (
            ("LOST", [index for index, each in enumerate(readings) if each.lost]),
            ("NO_HANDLE", [index for index, each in enumerate(readings) if each.unopened]),
        ):
            _set(name, ",".join(map(str, chosen)))
        remaps = [
            f"{index}:{'failed' if each.remap_failed else 'pending'}"
            for index, each in enumerate(readings)
            if each.remap_failed or each.remap_pending
        ]
        _set("REMAP", ",".join(remaps))
        _set("ECC", ",".join(f"{i}:{r.uncorrected}" for i, r in enumerate(readings)))
        self._looks += 1
        now = int(time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6)
        self._log.write_text(
            "".join(
                f"3,{self._looks},{now},-;NVRM: Xid (PCI:0000:{index + 1:02x}:00): {code}, pid=1\n"
                for index, each in enumerate(signals)
                for code in each.xids
            )
        )


def _set(name: str, value: str) -> None:
    if value:
        os.environ[f"FAKE_NVML_{name}"] = value
    else:
        os.environ.pop(f"FAKE_NVML_{name}", None)


def fake_driver() -> FakeDriver:
    """Build the library in a folder of its own, and read Xid codes from a file there."""
    folder = Path(tempfile.mkdtemp(prefix="fake-nvml-"))
    kernel_log.logged_xids.__defaults__ = (str(folder / "kmsg"), None)
    return FakeDriver(folder)
