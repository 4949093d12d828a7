"""Parse the signals of a device from the report of a driver."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Final

from ...hub.interfaces.devices import NO_SIGNALS, DeviceSignals

_LISTS: Final = frozenset({"throttled", "xids", "logged_xids"})
_NUMBERS: Final = tuple(field.name for field in fields(DeviceSignals) if field.name not in _LISTS)


def parse_signals(written: object) -> DeviceSignals:
    """Return the readings of a report; one that is no finite number is left out."""
    if not isinstance(written, dict):
        return NO_SIGNALS
    numbers = {
        name: float(value)
        for name in _NUMBERS
        if isinstance(value := written.get(name), int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
    }
    reasons, xids = written.get("throttled"), written.get("xids")
    logged = written.get("logged_xids")
    return DeviceSignals(
        **numbers,
        throttled=tuple(map(str, reasons)) if isinstance(reasons, list) else None,
        xids=tuple(code for code in xids if isinstance(code, int))
        if isinstance(xids, list)
        else (),
        logged_xids=tuple((pair[0], pair[1]) for pair in logged if _is_pair(pair))
        if isinstance(logged, list)
        else (),
    )


def _is_pair(written: object) -> bool:
    return (
        isinstance(written, list)
        and len(written) == 2  # noqa: PLR2004  # number and code
        and all(isinstance(part, int) for part in written)
    )
