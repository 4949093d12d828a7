"""Find devices that are held and not used, wait for the CPU, or run without any result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...records.leases import SignKind
from .findings import JobHistory, SignFinding

_UNUSED_SECONDS: Final = 900.0
"""How long a job may prepare its data before its devices count as unused."""
_IDLE_SECONDS: Final = 900.0
_IDLE_PERCENT: Final = 3.0
"""A device with less use is idle: drivers report short housekeeping of others."""
_USED_PERCENT: Final = 8.0
_STARVED_SECONDS: Final = 600.0
_STARVED_PERCENT: Final = 30.0
_BUSY_CORES: Final = 0.8
_PARTS: Final = 4
_CONSTANT_SECONDS: Final = 3600.0
_CONSTANT_PERCENT: Final = 85.0
_CONSTANT_SPREAD: Final = 2.5
_CONSTANT_RANGE: Final = 0.02


def device_signs(history: JobHistory) -> Iterator[SignFinding]:
    """Yield at most one sign about the use of the devices."""
    if not history.devices:
        return
    found = _idle(history) or _starved(history) or _constant(history)
    if found is not None:
        yield found


def _idle(history: JobHistory) -> SignFinding | None:
    """Return a sign if the devices were not used in a sliding window.

    A mean over the whole attempt would hide that a job has used them once and is idle since.
    """
    use = history.use
    seconds = max(_IDLE_SECONDS, 6 * use.seconds)
    window = history.window(seconds, lambda point: point.device_percent)
    if window is None or max(window.values) > _IDLE_PERCENT:
        return None
    last_used, held = 0.0, 0
    used = False
    for number, point in enumerate(use.points):
        if point.device_percent is not None and point.device_percent >= _USED_PERCENT:
            used, last_used = True, use.begins + (number + 1) * use.seconds
        held = max(held, point.device_bytes or 0)
    cores = history.window(seconds, lambda point: point.cores)
    figures = {
        "devices": history.devices,
        "idle_seconds": history.age - last_used,
        "held_bytes": held,
        "cores": None if cores is None else cores.mean,
    }
    if used:
        return SignFinding(kind=SignKind.DEVICES_IDLE, since=last_used, figures=figures)
    if history.age < _UNUSED_SECONDS:
        return None
    # What happened before the first reading is unknown, as after a long stop of the service.
    since = 0.0 if use.begins < _IDLE_SECONDS / 3 else use.begins
    return SignFinding(kind=SignKind.DEVICES_UNUSED, since=since, figures=figures)


def _starved(history: JobHistory) -> SignFinding | None:
    """Return a sign if the devices are hardly used while at least one core is busy."""
    seconds = max(_STARVED_SECONDS, 6 * history.use.seconds)
    devices = history.window(seconds, lambda point: point.device_percent)
    cores = history.window(seconds, lambda point: point.cores)
    if devices is None or cores is None:
        return None
    if min(cores.parts(_PARTS)) < _BUSY_CORES:
        return None
    # In each part, so that a phase on the CPU beside one on the devices is no sign.
    if not all(_IDLE_PERCENT < part <= _STARVED_PERCENT for part in devices.parts(_PARTS)):
        return None
    figures = {"percent": devices.mean, "cores": cores.mean, "seconds": seconds}
    return SignFinding(
        kind=SignKind.STARVED_LOADER, since=max(0.0, history.age - seconds), figures=figures
    )


def _constant(history: JobHistory) -> SignFinding | None:
    """Return a sign if devices are fully and evenly used for an hour without any output."""
    seconds = max(_CONSTANT_SECONDS, 6 * history.use.seconds)
    if history.last_output is None or history.last_output > history.age - seconds:
        return None
    devices = history.window(seconds, lambda point: point.device_percent)
    if devices is None or devices.mean < _CONSTANT_PERCENT or devices.spread > _CONSTANT_SPREAD:
        return None
    for value in (lambda p: p.device_bytes, lambda p: p.memory_bytes):
        memory = history.window(seconds, value)
        if memory is None or memory.relative_range > _CONSTANT_RANGE:
            return None
    figures = {"percent": devices.mean, "seconds": history.age - history.last_output}
    return SignFinding(kind=SignKind.CONSTANT_LOAD, since=history.last_output, figures=figures)
