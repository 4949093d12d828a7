"""Limits of the stored output of a job; every buffer and file of an attempt has one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

KIB: Final = 1 << 10
MIB: Final = 1 << 20
GIB: Final = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputLimits:
    """Limits of the output of one job: of text in characters, of everything else in bytes.

    Attributes:
        log: the size of ``log.txt``; beyond it, only the last lines are kept.
        cell_text: printed text of one cell in the output notebook.
        cell_items: the number of outputs of one cell in the output notebook; the first and the last
            ones are kept.
        item: one image, table or other rich output in the output notebook.
        notebook: the sum of all outputs in the output notebook.
        message: the text of one kernel message; Python kernels truncate it themselves.
        event_text, event_html, event_image: one output of this type in an event.
        cell_events, job_events: the number of events with outputs, per cell and per job.
        events: the sum of all events with outputs.
        archive_entries, archive: the number of entries and the unpacked size of an uploaded folder.
    """

    log: int = 16 * MIB
    cell_text: int = 1 * MIB
    cell_items: int = 1000
    item: int = 10 * MIB
    notebook: int = 64 * MIB
    message: int = 1 * MIB
    event_text: int = 16 * KIB
    event_html: int = 64 * KIB
    event_image: int = 256 * KIB
    cell_events: int = 200
    job_events: int = 2000
    events: int = 32 * MIB
    archive_entries: int = 10_000
    archive: int = 1 * GIB


def format_size(size: float) -> str:
    """Format a number of bytes for people, as ``8.1 GiB``."""
    for unit in ("bytes", "KiB", "MiB"):
        if size < KIB:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{_short(size)} {unit}"
        size /= KIB
    return f"{_short(size)} GiB"


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
