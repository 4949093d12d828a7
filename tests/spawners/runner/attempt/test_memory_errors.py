"""Errors of cells that say that memory ran out."""

from __future__ import annotations

import pytest

from carrel.spawners.runner.attempt.memory_errors import MemoryShortage, memory_shortage

MIB = 1 << 20
GIB = 1 << 30

TORCH = (
    "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 79.00 GiB of "
    "which 1.00 GiB is free. Including non-PyTorch memory, this process has 78.00 GiB in use."
)
OLD_TORCH = (
    "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 16.00 GiB total capacity; 15.00 GiB "
    "already allocated; 512.00 MiB free; 15.20 GiB reserved in total by PyTorch)"
)


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("MemoryError", "", MemoryShortage()),
        (
            "_ArrayMemoryError",
            "Unable to allocate 7.5 GiB for an array with shape (1, 2) and data type float64",
            MemoryShortage(wanted=15 * GIB // 2),
        ),
        (
            "OutOfMemoryError",
            TORCH,
            MemoryShortage(used=78 * GIB, wanted=5 * GIB // 2, limit=79 * GIB, device=True),
        ),
        (
            "RuntimeError",
            OLD_TORCH,
            MemoryShortage(used=16 * GIB - 512 * MIB, wanted=20 * MIB, limit=16 * GIB, device=True),
        ),
        (
            "RuntimeError",
            "[enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't allocate "
            "memory: you tried to allocate 4000 bytes. Error code 12 (Cannot allocate memory)",
            MemoryShortage(wanted=4000),
        ),
        (
            "XlaRuntimeError",
            "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8192 bytes.",
            MemoryShortage(wanted=8192, device=True),
        ),
        ("RuntimeError", "the queue is out of memory slots", None),
        ("ValueError", "Tried to allocate 2 GiB", None),
    ],
)
def test_an_error_tells_what_was_used_and_asked_for(
    name: str, value: str, found: MemoryShortage | None
) -> None:
    assert memory_shortage(name, value) == found
