"""The journal: an attempt's events, one JSON object per line, on disk before they are sent.

A reader after a crash must expect that its last line is torn, and that the job, whose
file it is, wrote anything into it. The event ``ended`` is therefore kept whole in a file of its own
as well, written before the line.
"""

from __future__ import annotations

import errno
import json
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from ..files.safe_fs import opened_file, write_into
from ..records.events import NewEvent
from ..records.json_value import Json, parse_json

DISK_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
ENDED: Final = "ended"
"""The kind of the last event of an attempt."""
LONGEST_LINE: Final = 4 << 20
LAST_EVENT: Final = "ended.json"
MOST_BYTES: Final = 64 << 20
"""Of a journal that is read: twice what the runner's own limits let it grow to."""


class Journal:
    """Writes numbered events, from any thread."""

    def __init__(self, path: Path) -> None:
        self._folder = path.parent
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._lock = threading.Lock()
        self._seq = 0
        self._torn = False
        """Whether the last line is incomplete, so that the next one must not continue it."""

    def write(self, kind: str, data: Mapping[str, Json]) -> NewEvent:
        """Number an event and put it on disk."""
        with self._lock:
            self._seq += 1
            event = NewEvent(seq=self._seq, at=time.time(), kind=kind, data=data)
            text = json.dumps(as_json(event)) + "\n"
            try:
                if kind == ENDED:
                    write_into(self._folder, LAST_EVENT, text)
                self._append(text.encode())
            except OSError as error:
                # A full disk must not end the work: the event can still be delivered.
                say(f"the journal cannot be written: {error}")
            return event

    def _append(self, line: bytes) -> None:
        data = b"\n" + line if self._torn else line
        written = os.write(self._descriptor, data)
        self._torn = written < len(data)
        if self._torn:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def sync(self) -> None:
        """Onto the disk itself; done by who sends, so that the work need not wait for it."""
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            say(f"the journal cannot be synced: {error}")


def say(text: str) -> None:
    """Print a line into the log of the attempt; on a full disk it is dropped."""
    with suppress(OSError):
        print(f"carrel: {text}", flush=True)


def as_json(event: NewEvent) -> dict[str, Json]:
    """Return the event as it is stored and sent."""
    return {"seq": event.seq, "at": event.at, "kind": event.kind, "data": event.data}


def read_journal(path: Path) -> Sequence[NewEvent]:
    """The whole lines of a journal, oldest first, with ``ended`` from its own file if that is torn.

    Of one that is too long the middle is left out: the end says how the attempt ended.
    """
    events: list[NewEvent] = []
    try:
        with opened_file(path.parent, path.name) as file:
            size = os.fstat(file.fileno()).st_size
            events += _events(file, MOST_BYTES - LONGEST_LINE)
            if size > file.tell():
                file.seek(max(file.tell(), size - LONGEST_LINE))
                file.readline(LONGEST_LINE)  # perhaps only the end of a line
                events += _events(file, LONGEST_LINE)
    except OSError:
        pass
    if not any(event.kind == ENDED for event in events):
        events += _last_event(path.parent)
    return tuple(events)


def _last_event(folder: Path) -> Iterator[NewEvent]:
    """The event ``ended`` from its own file, if it is there."""
    try:
        with opened_file(folder, LAST_EVENT) as file:
            for event in _events(file, LONGEST_LINE):
                if event.kind == ENDED:
                    yield event
                return
    except OSError:
        return


def _events(file: BinaryIO, most: int) -> Iterator[NewEvent]:
    ends = file.tell() + most
    while file.tell() < ends and (line := file.readline(LONGEST_LINE)):
        event = _parse(line)
        if event is not None:
            yield event


def _parse(line: bytes) -> NewEvent | None:
    try:
        found = parse_json(line)
        if not isinstance(found, dict):
            return None
        return NewEvent(
            seq=int(found["seq"]),
            at=float(found["at"]),
            kind=str(found["kind"]),
            data=dict(found["data"]),
        )
    except (ValueError, TypeError, KeyError, OverflowError):
        return None
