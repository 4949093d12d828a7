"""Messages to students about the limit that their code reached."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from .interface import SandboxLimits, StopReason

_ORDER: Final = (
    *(
        StopReason.MEMORY,
        StopReason.PROCESSES,
        StopReason.DISK,
        StopReason.OUTPUT,
        StopReason.TIME,
        StopReason.DIED,
    ),
    StopReason.OK,
)
_MIB: Final = 1 << 20


def worst(causes: Iterable[StopReason]) -> StopReason:
    """The cause that explains most of the others."""
    return min(causes, key=_ORDER.index, default=StopReason.OK)


def sentence(cause: StopReason, limits: SandboxLimits) -> str:
    """The message for a cause; empty for OK."""
    match cause:
        case StopReason.MEMORY:
            return f"The code used more than {limits.memory_bytes // _MIB} MiB of memory."
        case StopReason.PROCESSES:
            return f"The code started more than {limits.processes} processes and threads."
        case StopReason.DISK:
            return (
                f"The code wrote more than {limits.disk_bytes // _MIB} MiB, or a file of more "
                f"than {limits.file_bytes // _MIB} MiB."
            )
        case StopReason.OUTPUT:
            return (
                f"A cell printed more than {limits.output_bytes / _MIB:.1f} MiB, or a value of "
                f"more than {limits.answer_bytes / _MIB:.1f} MiB was to be compared."
            )
        case StopReason.TIME:
            return (
                f"A cell ran for more than {limits.cell_seconds:.0f} s (a test: "
                f"{limits.test_seconds:.0f} s), or all of them for more than "
                f"{limits.seconds:.0f} s."
            )
        case StopReason.DIED:
            return "The code ended the process in which it ran."
        case StopReason.OK:
            return ""
