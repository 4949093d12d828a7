"""Write ``log.txt``: a job's output up to a limit, then its last lines."""

from __future__ import annotations

import codecs
import os
import threading
from collections.abc import Callable

from ....hub.attempts.output_limits import OutputLimits
from .output_masker import Masker
from .text import KeptText, Lines, left_out, storable

_CHUNK = 1 << 16
_LONGEST_LINE = 1 << 14


class Log:
    """Writes to a descriptor, from any thread.

    A line that is redrawn (a progress bar) is written once, when it is finished.
    """

    def __init__(
        self,
        descriptor: int,
        limits: OutputLimits,
        cut: Callable[[str, int], None],
        masker: Masker | None = None,
    ) -> None:
        self._descriptor = descriptor
        self._lines = Lines(_LONGEST_LINE)
        self._kept = KeptText(limits.log)
        self._cut = cut
        self._masker = masker or Masker()
        self._lock = threading.Lock()
        self._full = False

    def write(self, text: str, missing: int = 0) -> None:
        """Write text to the log.

        Args:
            missing: number of bytes that were left out before this text.
        """
        with self._lock:
            if missing:
                self._append(self._lines.rest())
                if self._kept.open:
                    self._append(left_out(missing))
                else:
                    self._kept.skip(missing, self._report_cut)
            self._append(self._lines.add(text))

    def tick(self) -> None:
        """Write an unfinished line too, unless it is being redrawn."""
        with self._lock:
            if not self._lines.redrawn:
                self._append(self._lines.rest())

    def close(self) -> None:
        """Write the rest, and the last lines if not everything was kept."""
        with self._lock:
            rest = self._lines.rest()
            self._append(rest.rstrip("\r") + "\n" if rest else "")
            self._emit(self._kept.end)

    def tail(self, characters: int) -> str:
        with self._lock:
            return (self._kept.text + self._masker.text(self._lines.held))[-characters:]

    def _append(self, text: str) -> None:
        if not text:
            return
        self._emit(self._kept.add(self._masker.text(text), self._report_cut))
        if self._kept.dropped and not self._full:
            self._full = True
            self._emit("\n[carrel: the log is full; its last lines follow when the job ends]\n")

    def _report_cut(self, size: int) -> None:
        self._cut("log", size)

    def _emit(self, text: str) -> None:
        data = storable(text).encode()
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError:
            return  # a full disk must not stop the work


def drain(descriptor: int, take: Callable[[str], None]) -> threading.Thread:
    """Read a pipe to its end and close it, in a thread of its own."""

    def read() -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        with os.fdopen(descriptor, "rb", buffering=0) as pipe:
            while chunk := pipe.read(_CHUNK):
                take(decoder.decode(chunk))
        take(decoder.decode(b"", final=True))

    thread = threading.Thread(target=read, name="drain", daemon=True)
    thread.start()
    return thread
