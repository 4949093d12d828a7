"""Read from an error of a cell that memory ran out, and how much was asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_NAMES: Final = frozenset({"MemoryError", "_ArrayMemoryError", "OutOfMemoryError"})
_TEXTS: Final = re.compile(
    r"RESOURCE_EXHAUSTED: Out of memory|DefaultCPUAllocator: (?:can't|not enough) |"
    r"(?:CUDA|HIP) out of memory"
)
"""What JAX, TensorFlow and PyTorch say in errors of other names."""
_DEVICE: Final = re.compile(r"\b(?:CUDA|HIP|GPU)\b|RESOURCE_EXHAUSTED")
_SIZE: Final = r"(\d+(?:\.\d+)?) ?(bytes?|[KMGT]i?B)"
_WANTED: Final = re.compile(
    rf"(?:[Uu]nable to allocate|[Tt]ried to allocate|trying to allocate|allocating) {_SIZE}"
)
_TOTAL: Final = re.compile(rf"(?:total capacity of {_SIZE}|{_SIZE} total capacity)")
_FREE: Final = re.compile(rf"(?:of which {_SIZE} is free|{_SIZE} free)")
_POWERS: Final = {"b": 0, "k": 1, "m": 2, "g": 3, "t": 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryShortage:
    """What the runner knows of a lack of memory, in bytes; 0 if unknown.

    Attributes:
        used: what the processes of the job used when it ran out; of a device, what was taken.
        wanted: what was asked for in addition.
        limit: what the job may use, or the memory of the device.
        device: whether the memory is that of a device.
    """

    used: int = 0
    wanted: int = 0
    limit: int = 0
    device: bool = False


def memory_shortage(name: str, value: str) -> MemoryShortage | None:
    """Return what an error says of a lack of memory; None for an error of another kind.

    It knows the errors of Python, NumPy, PyTorch (``torch.OutOfMemoryError``, and its allocator of
    the CPU), JAX and TensorFlow. Their units are powers of 1024, whatever they call them.
    """
    if name not in _NAMES and not _TEXTS.search(value):
        return None
    device = _DEVICE.search(value) is not None
    total, free = _size(_TOTAL, value), _size(_FREE, value)
    return MemoryShortage(
        used=max(0, total - free) if device and total else 0,
        wanted=_size(_WANTED, value),
        limit=total if device else 0,
        device=device,
    )


def _size(pattern: re.Pattern[str], text: str) -> int:
    """Return the first size that a pattern finds, in bytes; 0 without one."""
    return next(_sizes(pattern, text), 0)


def _sizes(pattern: re.Pattern[str], text: str) -> Iterator[int]:
    for found in pattern.finditer(text):
        number, unit = (each for each in found.groups() if each is not None)
        yield int(float(number) * 1024 ** _POWERS[unit[0].lower()])
