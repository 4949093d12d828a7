"""What a job printed, made harmless for a terminal: it may colour text, and steer nothing else."""

from __future__ import annotations

import codecs
import re
from typing import Final

_RESET: Final = "\x1b[0m"
_LONGEST: Final = 4096
"""Characters of a sequence; what goes on for longer is no sequence, but text."""
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
    """Bytes in, text out that a terminal may be given, sequences that come in pieces included.

    Colours and the moves within a line (tab, carriage return) stay; everything else that is not
    text is left out: it could rename the window, erase what stands above, or write to the
    clipboard.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self._coloured = False

    def feed(self, part: bytes) -> str:
        text = self._held + self._decoder.decode(part)
        begun = _BEGUN.search(text)
        self._held = begun.group() if begun else ""
        return self._tamed(text[: len(text) - len(self._held)])

    def close(self) -> str:
        """What was held back; and the reader's own colours again."""
        rest = self._tamed(self._held + self._decoder.decode(b"", final=True))
        self._held = ""
        return rest + (_RESET if self._coloured else "")

    def _tamed(self, text: str) -> str:
        text = _SEQUENCE.sub(self._only_colours, text)
        return _LONE_ESCAPE.sub("", _CONTROLS.sub("", text))

    def _only_colours(self, found: re.Match[str]) -> str:
        sequence = found.group()
        if not _COLOUR.fullmatch(sequence):
            return ""
        self._coloured = sequence not in {_RESET, "\x1b[m"}
        return sequence


def plain(text: str) -> str:
    """Without any sequence; of lines that were written over, what was seen last."""
    lines = _SEQUENCE.sub("", text).replace("\r\n", "\n").split("\n")
    last = [line.rstrip("\r").rpartition("\r")[2] for line in lines]
    return "\n".join("".join(c for c in line if c == "\t" or c.isprintable()) for line in last)
