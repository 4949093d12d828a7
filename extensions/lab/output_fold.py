"""Reduce the entries of one cell to those that still show, as JupyterLab would show them.

A progress bar writes over its line, a live plot clears the output before it draws, an updated
display replaces its data. What was written over needs no room in a bounded journal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from .output_segment import JournalEntry

CLEAR: Final = "clear_output"
STREAM: Final = "stream"
UPDATE: Final = "update_display_data"
OUTPUTS: Final = frozenset({STREAM, "display_data", "execute_result", "error"})
"""Messages that add an output to a cell."""
LEFT_OUT: Final = "left_out"
"""Type of a mark, shown as an output: bytes and messages that the journal has not kept."""
CLEARED: Final = OUTPUTS | {UPDATE, LEFT_OUT}
"""What a ``clear_output`` removes."""


def fold(entries: Sequence[JournalEntry]) -> list[JournalEntry]:
    """Return fewer entries with the same effect; those that are no outputs stay."""
    shown = _Shown()
    clears = False
    for entry in entries:
        kind, content = entry["type"], entry["content"]
        if kind == CLEAR:
            clears = bool(content.get("wait"))
            if not clears:
                shown.clear()
        elif kind == UPDATE:
            shown.update(entry)
        else:
            if clears and kind in CLEARED:
                shown.clear()
                clears = False
            shown.add(entry)
    merged = _merged(shown.entries())
    if clears:
        merged.append({"seq": entries[-1]["seq"], "type": CLEAR, "content": {"wait": True}})
    return merged


def clears_at_last(entries: Sequence[JournalEntry]) -> bool:
    """Whether an entry removes all earlier outputs."""
    waits = False
    for entry in entries:
        if entry["type"] == CLEAR:
            if not entry["content"].get("wait"):
                return True
            waits = True
        elif waits and entry["type"] in CLEARED - {UPDATE}:
            return True
    return False


def write_over(text: str) -> str:
    """Return a text without the parts of lines that a carriage return wrote over.

    The last line keeps its last carriage return, so that the next text continues in its place.
    """
    if "\r" not in text:
        return text
    *lines, last = text.split("\n")
    head, mark, tail = last.rpartition("\r")
    return "\n".join([*map(_overlay, lines), _overlay(head) + mark + tail])


def _overlay(line: str) -> str:
    # A backspace moves within the line: left to JupyterLab.
    if "\r" not in line or "\b" in line:
        return line
    shown = ""
    for part in line.split("\r"):
        shown = part + shown[len(part) :]
    return shown


class _Shown:
    """The entries that still show, with the places of each display."""

    def __init__(self) -> None:
        self._entries: list[JournalEntry | None] = []
        self._displays: defaultdict[str, list[int]] = defaultdict(list)

    def entries(self) -> list[JournalEntry]:
        return [entry for entry in self._entries if entry is not None]

    def add(self, entry: JournalEntry) -> None:
        name = _display(entry)
        if name is not None:
            self._displays[name].append(len(self._entries))
        self._entries.append(entry)

    def clear(self) -> None:
        self._entries = [it for it in self.entries() if it["type"] not in CLEARED]
        self._displays.clear()

    def update(self, update: JournalEntry) -> None:
        """Put the new data into the displays of this id; keep the update where there is none."""
        found = False
        for place in self._displays.get(_display(update) or "", ()):
            entry = self._entries[place]
            if entry is None or entry["type"] == UPDATE:
                self._entries[place] = None  # an update of another cell's display, now outdated
            else:
                found = True
                content: dict[str, Any] = {**entry["content"], **update["content"]}
                self._entries[place] = {**entry, "content": content}
        if not found:
            self.add(update)


def _display(entry: JournalEntry) -> str | None:
    transient = entry["content"].get("transient")
    name = transient.get("display_id") if isinstance(transient, dict) else None
    return name if isinstance(name, str) else None


def _merged(entries: Sequence[JournalEntry]) -> list[JournalEntry]:
    """Join the texts of a stream that follow each other."""
    merged: list[JournalEntry] = []
    texts: list[str] = []

    def flush() -> None:
        if texts:
            merged[-1]["content"]["text"] = write_over("".join(texts))
            texts.clear()

    for entry in entries:
        if entry["type"] != STREAM:
            flush()
            merged.append(entry)
            continue
        name, text = entry["content"].get("name"), str(entry["content"].get("text", ""))
        if texts and merged[-1]["content"]["name"] == name:
            merged[-1]["seq"] = entry["seq"]
        else:
            flush()
            merged.append({"seq": entry["seq"], "type": STREAM, "content": {"name": name}})
        texts.append(text)
    flush()
    return merged
