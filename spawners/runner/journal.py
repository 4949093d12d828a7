"""The journal: an attempt's events, one JSON object per line, on disk before they are sent.

Whoever reads it after a crash must expect that its last line is torn.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...hub.ports.records import Json, NewEvent


class Journal:
    """Writes events with growing numbers, from any thread."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._lock = threading.Lock()
        self._seq = 0

    def write(self, kind: str, data: Mapping[str, Json]) -> NewEvent:
        """Number an event and put it on disk."""
        with self._lock:
            self._seq += 1
            event = NewEvent(seq=self._seq, at=time.time(), kind=kind, data=data)
            try:
                os.write(self._descriptor, (json.dumps(as_json(event)) + "\n").encode())
                os.fsync(self._descriptor)
            except OSError as error:
                # A full disk must not end the work: the event can still be delivered.
                print(f"carrel: the journal cannot be written: {error}", flush=True)
            return event


def as_json(event: NewEvent) -> dict[str, Json]:
    """The event as it is stored and sent."""
    return {"seq": event.seq, "at": event.at, "kind": event.kind, "data": event.data}


def read_journal(path: Path) -> Sequence[NewEvent]:
    """The whole lines of a journal, oldest first; empty where there is none."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return ()
    events = []
    for line in lines:
        event = _parse(line)
        if event is not None:
            events.append(event)
    return tuple(events)


def _parse(line: bytes) -> NewEvent | None:
    try:
        found = json.loads(line)
        return NewEvent(
            seq=int(found["seq"]),
            at=float(found["at"]),
            kind=str(found["kind"]),
            data=dict(found["data"]),
        )
    except (ValueError, TypeError, KeyError):
        return None
