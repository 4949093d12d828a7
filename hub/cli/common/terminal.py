"""Sanitize the output of jobs for a terminal: keep colours, remove other control sequences."""

from __future__ import annotations

import codecs
import re
from typing import Final

_RESET: Final = "\x1b[0m"
_LONGEST: Final = 4096
"""Max length of a sequence; anything longer is text."""
_TEXT: Final = rf"[^\x07\x1b\n]{{0,{_LONGEST}}}"
_SEQUENCE: Final = re.compile(
    r"\x1b\[[0-?]{0,64}[ -/]{0,4}[@-~]"  # moves the cursor, erases, colours
    rf"|\x1b[\]PX^_]{_TEXT}(?:\x07|\x1b\\)"  # titles, links, the clipboard
    r"|\x1b[ -/]{0,4}[0-~]"  # resets, switches the character set
)
_BEGUN: Final = re.compile(
    rf"\x1b(?:\[[0-?]{{0,64}}[ -/]{{0,4}}|[\]PX^_]{_TEXT}\x1b?|[ -/]{{0,4}})?\Z"
)
_COLOUR: Final = re.compile(r"\x1b\[[0-9;:]*m")
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]")
_LONE_ESCAPE: Final = re.compile(r"\x1b(?!\[[0-9;:]*m)")


class TerminalSanitizer:
    """Decode bytes to text that is safe for a terminal, even if sequences arrive in pieces.

    Colours, tabs and carriage returns are kept; other control characters and sequences are
    removed: they could rename the window, erase lines, or write to the clipboard.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self._coloured = False

    def feed(self, part: bytes) -> str:
        text = self._held + self._decoder.decode(part)
        begun = _BEGUN.search(text)
        self._held = begun.group() if begun else ""
        return self._sanitized(text[: len(text) - len(self._held)])

    def close(self) -> str:
        """Return the rest of the text, and reset the colours."""
        rest = self._sanitized(self._held + self._decoder.decode(b"", final=True))
        self._held = ""
        return rest + (_RESET if self._coloured else "")

    def _sanitized(self, text: str) -> str:
        text = _SEQUENCE.sub(self._only_colours, text)
        return _LONE_ESCAPE.sub("", _CONTROLS.sub("", text))

    def _only_colours(self, found: re.Match[str]) -> str:
        sequence = found.group()
        if not _COLOUR.fullmatch(sequence):
            return ""
        self._coloured = sequence not in {_RESET, "\x1b[m"}
        return sequence


def plain(text: str) -> str:
    """Remove all control sequences; of overwritten lines keep the last text."""
    lines = _SEQUENCE.sub("", text).replace("\r\n", "\n").split("\n")
    last = [line.rstrip("\r").rpartition("\r")[2] for line in lines]
    return "\n".join("".join(c for c in line if c == "\t" or c.isprintable()) for line in last)
