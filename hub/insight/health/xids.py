"""The errors of NVIDIA GPUs (Xid) that tell of broken hardware.

Errors that programs cause by themselves, such as 13, 31 and 43 (a fault in a kernel of the program)
and 45 (the clean-up after another one), say nothing about the device. The meanings are those of
https://docs.nvidia.com/deploy/xid-errors/.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

HARDWARE_XIDS: Final[Mapping[int, str]] = MappingProxyType(
    {
        48: "uncorrectable memory error",
        62: "halt of an internal micro-controller",
        64: "memory rows could not be remapped",
        74: "NVLink error",
        79: "the device has fallen off the bus",
        95: "uncontained memory error",
        119: "time-out of the system processor",
        120: "error of the system processor",
        140: "unrecovered memory error",
    }
)


def hardware_errors(codes: Iterable[int]) -> str:
    """Return the meanings of the codes that tell of broken hardware; empty without one."""
    known = dict.fromkeys(code for code in codes if code in HARDWARE_XIDS)
    return ", ".join(f"Xid {code} ({HARDWARE_XIDS[code]})" for code in known)
