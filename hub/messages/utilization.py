"""Sentences about the use of CPU, memory and devices, for pages and the command line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..schemas import DeviceOut, UtilizationOut
from .units import size

_FEW = 10


def cpu(found: UtilizationOut) -> str:
    """``0.8 cores on average``; empty if it was not measured."""
    return "" if found.mean_cores is None else f"{cores(found.mean_cores)} on average"


def memory(found: UtilizationOut) -> str:
    """``1.2 GiB at most``; empty if it was not measured."""
    return "" if found.peak_memory_bytes is None else f"{size(found.peak_memory_bytes)} at most"


def device(found: UtilizationOut) -> str:
    """``45 % on average, 3 GiB of its memory at most``; empty if it was not measured."""
    parts = []
    if found.mean_device_percent is not None:
        parts.append(f"{found.mean_device_percent:.0f} % on average")
    if found.peak_device_bytes is not None:
        parts.append(f"{size(found.peak_device_bytes)} of device memory at most")
    return ", ".join(parts)


def not_measured(devices: Sequence[DeviceOut]) -> str:
    """Return why the use of these devices is unknown; empty without devices."""
    if not devices:
        return ""
    if all(one.simulated for one in devices):
        return "Simulated devices: their use is not measured."
    return "The driver does not report the use of these devices."


def facts(found: UtilizationOut | None, devices: Sequence[DeviceOut]) -> Iterator[tuple[str, str]]:
    """Yield names and values, for a list of facts."""
    if found is None:
        return
    yield "CPU used", cpu(found)
    yield "Memory used", memory(found)
    yield "Devices used", device(found) or not_measured(devices)


def cores(number: float) -> str:
    """``0.82 cores``, ``12 cores``."""
    text = f"{number:.2f}" if number < _FEW else f"{number:.0f}"
    return f"{text} core{'' if text == '1.00' else 's'}"
