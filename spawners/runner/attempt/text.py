"""Text of unknown length: the beginning and the end are kept, carriage returns are obeyed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from ....hub.attempts.output_limits import size_words

_LONGEST_NOTE: Final = 32


def fold(text: str) -> str:
    """What is left on a terminal: a carriage return begins the line anew.

    A last one stays, for what may come after it. (By lines and not with a pattern, which would
    take quadratic time on a long line.)
    """
    if "\r" not in text:
        return text
    return "\n".join(map(_fold_line, text.split("\n")))


def _fold_line(line: str) -> str:
    body = line.rstrip("\r")
    last = body.rsplit("\r", 1)[-1]
    return last if body == line else last + "\r"


def fold_on(text: str) -> str:
    """The same for a text that goes on from an earlier one.

    A carriage return in its first line goes to the front of it: it takes away also what the
    earlier text has left on that line.
    """
    first, newline, rest = text.partition("\n")
    begun_anew = "\r" in first.rstrip("\r")
    return ("\r" if begun_anew else "") + fold(first) + newline + fold(rest)


class Lines:
    """Folds a text that comes in pieces: gives out whole lines, holds back the last one."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self.held = ""
        self.redrawn = False
        """Whether the line that is held back has been begun anew: a progress bar."""

    def add(self, text: str) -> str:
        whole, newline, rest = (self.held + text).rpartition("\n")
        self.redrawn = "\r" in rest or (self.redrawn and not newline)
        self.held = fold(rest)
        # Before a line end a carriage return moves nothing.
        ready = "".join(fold(line).rstrip("\r") + "\n" for line in whole.split("\n"))
        ready = ready if newline else ""
        if len(self.held) > self._longest:
            ready, self.held = ready + self.held, ""
        return ready

    def rest(self) -> str:
        held, self.held = self.held, ""
        return held


class KeptText:
    """The first three quarters of a limit, and the last quarter, with a note between them."""

    def __init__(self, limit: int) -> None:
        limit = max(0, limit - _LONGEST_NOTE)
        self._room = limit * 3 // 4
        self._tail_limit = limit - self._room
        self._head: list[str] = []
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self.dropped = 0
        """Bytes that are in neither."""

    def add(self, text: str, dropped: Callable[[int], None]) -> str:
        """Take in more; returns what went into the beginning."""
        head, rest = text[: self._room], text[self._room :]
        if head:
            self._room -= len(head)
            self._head.append(head)
        if rest:
            self._push(rest)
            before = self.dropped
            self._trim()
            if self.dropped > before:
                dropped(self.dropped - before)
        return head

    def skip(self, size: int, dropped: Callable[[int], None]) -> None:
        """Here so much is missing from the outset; what follows belongs to the end.

        The text has one gap: what was kept of the end before goes into it.
        """
        self._room = 0
        before = sum(map(utf8_size, self._tail))
        self._tail.clear()
        self._tail_size = 0
        self.dropped += size + before
        if before:
            dropped(before)

    @property
    def open(self) -> bool:
        """Whether the beginning still takes something."""
        return self._room > 0

    def _push(self, text: str) -> None:
        self._tail.append(text)
        self._tail_size += len(text)

    def _trim(self) -> None:
        over = self._tail_size - self._tail_limit
        while over > 0:
            first = self._tail.popleft()
            if len(first) > over:
                self._tail.appendleft(first[over:])
                first = first[:over]
            self._tail_size -= len(first)
            self.dropped += utf8_size(first)
            over -= len(first)

    @property
    def end(self) -> str:
        """What comes after the beginning, led by a line on what was left out."""
        return (left_out(self.dropped) if self.dropped else "") + "".join(self._tail)

    @property
    def text(self) -> str:
        if len(self._head) > 1:
            self._head = ["".join(self._head)]
        return "".join(self._head) + self.end


def left_out(size: int) -> str:
    """The line in the place of what is missing."""
    return f"\n[{size_words(size)} left out]\n"


def utf8_size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def storable(text: str) -> str:
    """Of characters that UTF-8 can carry."""
    return text.encode("utf-8", "replace").decode("utf-8")
