"""The bounded entries of one execution of a cell: its beginning and its newest part.

The first segment holds the beginning. When it is full, what was written over is removed; if that is
not enough, newer entries go to the tail, two segments of which the older one is deleted when the
newer one is full. A mark says how much was left out between the two.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from .output_fold import CLEARED, LEFT_OUT, clears_at_last, fold
from .output_segment import JournalEntry, OutputSegment, encode, size_of

SEGMENT_BYTES: Final = 4 << 20
"""An execution has three segments at most."""
LARGEST_MESSAGE: Final = 2
"""In segments: a larger message is left out, a smaller one may make its segment larger."""
_HEAD, _TAIL = "head", "tail"
_TAILS = 2
_SUFFIX = ".jsonl"


@dataclass(slots=True)
class BoundedOutputs:
    """The entries of one execution, in files ``NAME.head.jsonl`` and ``NAME.tail-N.jsonl``.

    Attributes:
        folder: of the files.
        name: unique in the folder.
        rewritten_at: readers that know less than this entry read again from the start.
        last: number of the last entry.
    """

    folder: Path
    name: str
    segment_bytes: int = SEGMENT_BYTES
    rewritten_at: int = 0
    last: int = 0
    _segments: list[OutputSegment] = field(default_factory=list)
    _closed: bool = False
    """The first segment takes no more entries."""
    _tails: int = 0
    _bytes_left_out: int = 0
    _messages_left_out: int = 0

    @classmethod
    def load(cls, folder: Path, name: str, *, segment_bytes: int = SEGMENT_BYTES) -> BoundedOutputs:
        """Read the files of an earlier server."""
        made = cls(folder, name, segment_bytes)
        tails = {
            int(path.name.removesuffix(_SUFFIX).rpartition("-")[2]): path
            for path in folder.glob(f"{name}.{_TAIL}-*{_SUFFIX}")
        }
        paths = [folder / f"{name}.{_HEAD}{_SUFFIX}", *(tails[number] for number in sorted(tails))]
        made._segments = [OutputSegment.load(path) for path in paths if path.is_file()]
        made._tails = max(tails, default=0)
        made._closed = bool(tails)
        entries = [entry for segment in made._segments for entry in segment.read()]
        marks = [entry["content"] for entry in entries if _is_sum(entry)]
        made._bytes_left_out = max((mark["bytes"] for mark in marks), default=0)
        made._messages_left_out = max((mark["messages"] for mark in marks), default=0)
        made.last = max((entry["seq"] for entry in entries), default=0)
        return made

    @property
    def size(self) -> int:
        return size_of(self._segments)

    def append(self, seq: int, kind: str, content: dict[str, Any]) -> None:
        """Add an entry; one that is too large, or no JSON, leaves a mark in its place."""
        try:
            line = encode({"seq": seq, "type": kind, "content": content})
        except ValueError:
            line = encode(_mark(seq, size=0, messages=1))
        if len(line) > LARGEST_MESSAGE * self.segment_bytes:
            line = encode(_mark(seq, size=len(line), messages=1))
        self._segment_for(len(line)).append(seq, line)
        self.last = seq

    def read(self, after: int = -1) -> list[JournalEntry]:
        """Return the entries after this number, with one mark of what was left out between."""
        entries: list[JournalEntry] = []
        for number, segment in enumerate(self._segments):
            if number == 1 and self._messages_left_out and after < self.rewritten_at:
                entries.append(self._sum(seq=self._head.last))
            try:
                entries += (entry for entry in segment.read(after) if not _is_sum(entry))
            except (OSError, ValueError):
                # Its user has removed or changed the file.
                entries.append(_mark(self.last, size=segment.size, messages=len(segment)))
        return entries

    def drop_outputs(self, seq: int) -> None:
        """Leave out all outputs, and say so."""
        entries = self.read()
        kept = [entry for entry in entries if entry["type"] not in CLEARED]
        size = sum(len(encode(entry)) for entry in entries if entry["type"] in CLEARED)
        if len(entries) <= len(kept) + 1:
            return  # nothing, or the mark alone
        mark = _mark(seq, size=size, messages=len(entries) - len(kept))
        self._start_again([*kept, mark], seq)

    def move(self, folder: Path, name: str, seq: int) -> BoundedOutputs:
        """Move the files to another journal, whose readers read all of it."""
        self.close()
        for segment in self._segments:
            moved = folder / segment.path.name.replace(self.name, name, 1)
            segment.path.replace(moved)
            segment.path = moved
        self.folder, self.name = folder, name
        self.rewritten_at = self.last = seq
        return self

    def close(self) -> None:
        for segment in self._segments:
            segment.close()

    def delete(self) -> None:
        for segment in self._segments:
            segment.delete()

    def _segment_for(self, size: int) -> OutputSegment:
        """Return the segment that takes the next entry."""
        if not self._segments:
            self._segments.append(OutputSegment(self.folder / f"{self.name}.{_HEAD}{_SUFFIX}"))
        newest = self._segments[-1]
        if newest.size + size <= self.segment_bytes and not (newest is self._head and self._closed):
            return newest
        if newest is self._head:
            self._fold(size)
        elif clears_at_last(entries := newest.read()):
            kept = [it for it in self._head.read() if it["type"] not in CLEARED]
            entries = [*kept, *(it for it in entries if not _is_sum(it))]
            self._start_again(entries, self.last, size=size)
        else:
            self._rotate()
        return self._segments[-1]

    @property
    def _head(self) -> OutputSegment:
        return self._segments[0]

    def _fold(self, size: int) -> None:
        self._head.replace(fold(self._head.read()))
        self.rewritten_at = self.last
        self._close_head(size)

    def _close_head(self, size: int) -> None:
        """Begin a tail if the first segment has no place for much more than the next entry."""
        self._closed = self._head.size + max(size, self.segment_bytes // 2) > self.segment_bytes
        if self._closed:
            self._rotate()

    def _rotate(self) -> None:
        if len(self._segments) > _TAILS:
            oldest = self._segments.pop(1)
            self._bytes_left_out += oldest.size
            # The first two tails were begun when nothing was left out: they have no sum.
            self._messages_left_out += len(oldest) - (self._tails - 1 > _TAILS)
            self.rewritten_at = max(self.rewritten_at, oldest.last)
            oldest.delete()
        self._tails += 1
        newest = OutputSegment(self.folder / f"{self.name}.{_TAIL}-{self._tails}{_SUFFIX}")
        self._segments.append(newest)
        if self._messages_left_out:
            newest.append(self.last, encode(self._sum(seq=self.last)))

    def _start_again(self, entries: Iterable[JournalEntry], seq: int, *, size: int = 0) -> None:
        """Put these entries in place of all."""
        for segment in self._segments[1:]:
            segment.delete()
        del self._segments[1:]
        self._head.replace(fold(list(entries)))
        self._bytes_left_out = self._messages_left_out = self._tails = 0
        self.rewritten_at = self.last = seq
        self._close_head(size)

    def _sum(self, *, seq: int) -> JournalEntry:
        content = {
            "bytes": self._bytes_left_out,
            "messages": self._messages_left_out,
            "sum": True,
        }
        return {"seq": seq, "type": LEFT_OUT, "content": content}


def _mark(seq: int, *, size: int, messages: int) -> JournalEntry:
    return {"seq": seq, "type": LEFT_OUT, "content": {"bytes": size, "messages": messages}}


def _is_sum(entry: JournalEntry) -> bool:
    return entry["type"] == LEFT_OUT and bool(entry["content"].get("sum"))
