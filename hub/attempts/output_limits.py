"""Limits of the stored output of a job: every buffer and file of an attempt has one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

KIB: Final = 1 << 10
MIB: Final = 1 << 20
GIB: Final = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputLimits:
    """Text is counted in characters, everything else in bytes.

    Attributes:
        log: of ``log.txt``; beyond it only the last lines are kept.
        cell_text: what one cell may print into the output notebook.
        cell_items: outputs of one cell in the output notebook: its first and its last ones.
        item: one image, table or other rich value in the output notebook.
        notebook: all outputs of the output notebook together.
        message: what one message of a kernel may print; a Python kernel cuts it itself.
        event_text, event_html, event_image: the same outputs, in an event.
        cell_events, job_events: events that carry an output.
        events: all of these events together.
        archive_entries, archive: an uploaded folder, unpacked.
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


def size_words(size: float) -> str:
    """``8.1 GiB``: a size as people read it."""
    for unit in ("bytes", "KiB", "MiB"):
        if size < KIB:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{_short(size)} {unit}"
        size /= KIB
    return f"{_short(size)} GiB"


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
