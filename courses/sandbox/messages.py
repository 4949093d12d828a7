"""What a student reads when a limit was met."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from .interface import Cause, Limits

_ORDER: Final = (
    *(Cause.MEMORY, Cause.PROCESSES, Cause.DISK, Cause.OUTPUT, Cause.TIME, Cause.DIED),
    Cause.OK,
)
_MIB: Final = 1 << 20


def worst(causes: Iterable[Cause]) -> Cause:
    """That which explains most of the others."""
    return min(causes, key=_ORDER.index, default=Cause.OK)


def sentence(cause: Cause, limits: Limits) -> str:
    """Empty where nothing was met."""
    match cause:
        case Cause.MEMORY:
            return f"The code used more than {limits.memory_bytes // _MIB} MiB of memory."
        case Cause.PROCESSES:
            return f"The code started more than {limits.processes} processes and threads."
        case Cause.DISK:
            return (
                f"The code wrote more than {limits.disk_bytes // _MIB} MiB, or a file of more "
                f"than {limits.file_bytes // _MIB} MiB."
            )
        case Cause.OUTPUT:
            return (
                f"A cell printed more than {limits.output_bytes / _MIB:.1f} MiB, or a value of "
                f"more than {limits.answer_bytes / _MIB:.1f} MiB was to be compared."
            )
        case Cause.TIME:
            return (
                f"A cell ran for more than {limits.cell_seconds:.0f} s (a test: "
                f"{limits.test_seconds:.0f} s), or all of them for more than "
                f"{limits.seconds:.0f} s."
            )
        case Cause.DIED:
            return "The code ended the process in which it ran."
        case Cause.OK:
            return ""
