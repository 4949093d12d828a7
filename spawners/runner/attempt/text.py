"""Shorten long text to its beginning and its end, and apply carriage returns."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from ....hub.attempts.output_limits import format_size

_LONGEST_NOTE: Final = 32


def fold(text: str) -> str:
    """Return the text as a terminal shows it: a carriage return restarts the line.

    A trailing carriage return is kept, for text that may follow. The text is split into lines,
    because a pattern would take quadratic time on a long line.
    """
    if "\r" not in text:
        return text
    return "\n".join(map(_fold_line, text.split("\n")))


def _fold_line(line: str) -> str:
    body = line.rstrip("\r")
    last = body.rsplit("\r", 1)[-1]
    return last if body == line else last + "\r"


def fold_continued(text: str) -> str:
    """Fold a text that continues an earlier one.

    A carriage return in its first line moves to the front, because it also overwrites the end of
    the earlier text on that line.
    """
    first, newline, rest = text.partition("\n")
    overwrites = "\r" in first.rstrip("\r")
    return ("\r" if overwrites else "") + fold(first) + newline + fold(rest)


class Lines:
    """Folds text that arrives in pieces: returns complete lines and holds back the last one."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self.held = ""
        self.redrawn = False
        """Whether the line that is held back is being redrawn: a progress bar."""

    def add(self, text: str) -> str:
        complete, newline, rest = (self.held + text).rpartition("\n")
        self.redrawn = "\r" in rest or (self.redrawn and not newline)
        self.held = fold(rest)
        # A carriage return before a line end has no effect.
        ready = "".join(fold(line).rstrip("\r") + "\n" for line in complete.split("\n"))
        ready = ready if newline else ""
        if len(self.held) > self._longest:
            ready, self.held = ready + self.held, ""
        return ready

    def rest(self) -> str:
        held, self.held = self.held, ""
        return held


class KeptText:
    """Text within a limit: three quarters for the beginning, one for the end, a note between."""

    def __init__(self, limit: int) -> None:
        limit = max(0, limit - _LONGEST_NOTE)
        self._head_left = limit * 3 // 4
        self._tail_limit = limit - self._head_left
        self._head: list[str] = []
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self.dropped = 0
        """Bytes that were left out."""

    def add(self, text: str, dropped: Callable[[int], None]) -> str:
        """Add text; return what went into the beginning."""
        head, rest = text[: self._head_left], text[self._head_left :]
        if head:
            self._head_left -= len(head)
            self._head.append(head)
        if rest:
            self._push(rest)
            before = self.dropped
            self._trim()
            if self.dropped > before:
                dropped(self.dropped - before)
        return head

    def skip(self, size: int, dropped: Callable[[int], None]) -> None:
        """Record that bytes are missing here; later text belongs to the end.

        The text has only one gap: text that was kept for the end so far is dropped too.
        """
        self._head_left = 0
        before = sum(map(utf8_size, self._tail))
        self._tail.clear()
        self._tail_size = 0
        self.dropped += size + before
        if before:
            dropped(before)

    @property
    def open(self) -> bool:
        """Whether the beginning is not full yet."""
        return self._head_left > 0

    def _push(self, text: str) -> None:
        self._tail.append(text)
        self._tail_size += len(text)

    def _trim(self) -> None:
        excess = self._tail_size - self._tail_limit
        while excess > 0:
            first = self._tail.popleft()
            if len(first) > excess:
                self._tail.appendleft(first[excess:])
                first = first[:excess]
            self._tail_size -= len(first)
            self.dropped += utf8_size(first)
            excess -= len(first)

    @property
    def end(self) -> str:
        """The note on omitted text, if any, and the end."""
        return (left_out(self.dropped) if self.dropped else "") + "".join(self._tail)

    @property
    def text(self) -> str:
        if len(self._head) > 1:
            self._head = ["".join(self._head)]
        return "".join(self._head) + self.end


def left_out(size: int) -> str:
    """Return the line that replaces missing bytes."""
    return f"\n[{format_size(size)} left out]\n"


def utf8_size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def storable(text: str) -> str:
    """Replace characters that UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode("utf-8")
