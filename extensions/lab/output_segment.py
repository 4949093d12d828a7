"""An append-only file of numbered entries, one JSON object per line.

Only ASCII is written, so that a line ends at a line feed and nowhere else. A server that was killed
may leave a torn last line; it is cut off when the file is opened again.
"""

from __future__ import annotations

import json
import os
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypedDict

FILE_MODE: Final = 0o600


class JournalEntry(TypedDict):
    """A message of a kernel, or a mark of the journal.

    Attributes:
        seq: its number; numbers of a journal only grow.
        type: the type of the message, or one of ``output_journal``'s own.
        content: the content of the message.
    """

    seq: int
    type: str
    content: dict[str, Any]


def encode(entry: JournalEntry) -> bytes:
    """Return the line of an entry; raises ``ValueError`` for NaN and infinities."""
    return json.dumps(entry, allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"


@dataclass(slots=True)
class OutputSegment:
    """One file, with the number and the position of each line.

    Attributes:
        path: the file; made by the first entry.
        size: bytes of the complete lines.
    """

    path: Path
    size: int = 0
    _seqs: array[int] = field(default_factory=lambda: array("q"))
    _offsets: array[int] = field(default_factory=lambda: array("q"))
    _descriptor: int = -1

    @classmethod
    def load(cls, path: Path) -> OutputSegment:
        """Open a file of an earlier server, without what is not a complete entry at its end."""
        segment = cls(path)
        data = path.read_bytes()
        for line in data.split(b"\n")[:-1]:
            try:
                seq = int(json.loads(line)["seq"])
            except (ValueError, TypeError, KeyError):
                break
            segment._note(seq, len(line) + 1)
        if segment.size < len(data):
            os.truncate(path, segment.size)
        return segment

    def __len__(self) -> int:
        return len(self._seqs)

    @property
    def last(self) -> int:
        """The number of the last entry."""
        return self._seqs[-1] if self._seqs else 0

    def append(self, seq: int, line: bytes) -> None:
        """Write one line, or nothing: the file has no torn line after an error."""
        if self._descriptor < 0:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
            self._descriptor = os.open(self.path, flags, FILE_MODE)
        written = 0
        try:
            # A full disk takes a part of a line, and then none.
            while written < len(line):
                written += os.write(self._descriptor, line[written:])
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._descriptor, self.size)
            raise
        self._note(seq, len(line))

    def read(self, after: int = -1) -> list[JournalEntry]:
        """Return the entries with greater numbers than ``after``."""
        first = bisect_right(self._seqs, after)
        if first == len(self._seqs):
            return []
        with self.path.open("rb") as file:
            file.seek(self._offsets[first])
            data = file.read(self.size - self._offsets[first])
        return [json.loads(line) for line in data.split(b"\n") if line]

    def replace(self, entries: Iterable[JournalEntry]) -> None:
        """Put other entries in place of all, at once."""
        self.close()
        lines = [(entry["seq"], encode(entry)) for entry in entries]
        fresh = self.path.with_suffix(".new")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE)
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(line for _, line in lines)
        fresh.replace(self.path)
        self.size = 0
        del self._seqs[:], self._offsets[:]
        for seq, line in lines:
            self._note(seq, len(line))

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def delete(self) -> None:
        self.close()
        self.path.unlink(missing_ok=True)

    def _note(self, seq: int, size: int) -> None:
        self._seqs.append(seq)
        self._offsets.append(self.size)
        self.size += size


def size_of(segments: Sequence[OutputSegment]) -> int:
    return sum(segment.size for segment in segments)
