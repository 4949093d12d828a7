"""The journal of an attempt: its events on disk, one JSON object per line, before they are sent.

After a crash the last line may be incomplete, and the job, which owns the file, may have written
anything to it. The event ``ended`` is therefore also written atomically to its own file, before its
line in the journal.
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
"""Maximum bytes of a line that is read."""
LAST_EVENT: Final = "ended.json"
MOST_BYTES: Final = 64 << 20
"""Maximum bytes of a journal that are read: twice what the limits of the runner allow."""


class Journal:
    """Writes numbered events; safe to call from any thread."""

    def __init__(self, path: Path) -> None:
        self._folder = path.parent
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._lock = threading.Lock()
        self._seq = 0
        self._torn = False
        """Whether the last line is incomplete, so that the next event must begin a new line."""

    def write(self, kind: str, data: Mapping[str, Json]) -> NewEvent:
        """Number an event and append it to the file."""
        with self._lock:
            self._seq += 1
            event = NewEvent(seq=self._seq, at=time.time(), kind=kind, data=data)
            text = json.dumps(as_json(event)) + "\n"
            try:
                if kind == ENDED:
                    write_into(self._folder, LAST_EVENT, text)
                self._append(text.encode())
            except OSError as error:
                # A full disk must not stop the job: the event can still be delivered.
                log_line(f"the journal cannot be written: {error}")
            return event

    def _append(self, line: bytes) -> None:
        data = b"\n" + line if self._torn else line
        written = os.write(self._descriptor, data)
        self._torn = written < len(data)
        if self._torn:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def sync(self) -> None:
        """Flush the file to disk; called by the delivery thread, so that the job does not wait."""
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            log_line(f"the journal cannot be synced: {error}")


def log_line(text: str) -> None:
    """Print a line to the log of the attempt; drop it if the disk is full."""
    with suppress(OSError):
        print(f"carrel: {text}", flush=True)


def as_json(event: NewEvent) -> dict[str, Json]:
    """Return the event as it is stored and sent."""
    return {"seq": event.seq, "at": event.at, "kind": event.kind, "data": event.data}


def read_journal(path: Path) -> Sequence[NewEvent]:
    """Return the events of the complete lines of a journal, oldest first.

    ``ended`` is read from its own file if its line is missing. The middle of a journal that is too
    long is skipped, because its end says how the attempt ended.
    """
    events: list[NewEvent] = []
    try:
        with opened_file(path.parent, path.name) as file:
            size = os.fstat(file.fileno()).st_size
            events += _events(file, MOST_BYTES - LONGEST_LINE)
            if size > file.tell():
                file.seek(max(file.tell(), size - LONGEST_LINE))
                file.readline(LONGEST_LINE)  # may be the end of a line only
                events += _events(file, LONGEST_LINE)
    except OSError:
        pass
    if not any(event.kind == ENDED for event in events):
        events += _last_event(path.parent)
    return tuple(events)


def _last_event(folder: Path) -> Iterator[NewEvent]:
    """Yield the event ``ended`` from its own file, if it exists."""
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
