"""Compute the progress of jobs from their events, and cache it."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict

from ..interfaces.store import Store
from ..records.events import EventRecord
from ..records.json_value import Json
from ..records.requests import RequestRecord
from ..scheduling.model.snapshot import Kind
from ..schemas import ProgressOut, StepOut

_KEPT = 2000
_AT_ONCE = 1000
_LONGEST_TEXT = 200
TOLD_BY = frozenset(
    {"cells", "cell_started", "cell_failed", "cell_finished", "progress", "ended", "state"}
)
"""The kinds that progress is folded from; what cells printed is not even read for it."""


class ProgressCache:
    """A bounded cache over the store's events; a restart reads them again."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[str, tuple[int, ProgressOut | None]] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, event: EventRecord) -> None:
        """Take in one more event; one that is not the next is left to ``of``."""
        with self._lock:
            if event.request_id in self._known:
                last, progress = self._known[event.request_id]
                if event.id > last:
                    self._known[event.request_id] = (event.id, progress_after(progress, event))

    def requeued(self, request_id: str) -> None:
        """A new attempt starts over; its ``state`` event did not come by here."""
        with self._lock:
            self._known.pop(request_id, None)

    def of(self, record: RequestRecord) -> ProgressOut | None:
        if record.kind is Kind.SESSION or record.lease is None:
            return None
        with self._lock:
            if record.id not in self._known:
                self._known[record.id] = self._read(record.id)
                while len(self._known) > _KEPT:
                    self._known.popitem(last=False)
            self._known.move_to_end(record.id)
            return self._known[record.id][1]

    def _read(self, request_id: str) -> tuple[int, ProgressOut | None]:
        last, progress = 0, None
        while events := self._store.events(request_id, after=last, limit=_AT_ONCE, kinds=TOLD_BY):
            for event in events:
                last, progress = event.id, progress_after(progress, event)
        return last, progress


def progress_after(before: ProgressOut | None, event: EventRecord) -> ProgressOut | None:
    """Progress after one more event; a new attempt starts over."""
    number = event.data.get("number")
    match event.kind:
        case "cells":
            cells = event.data.get("cells")
            return ProgressOut(cells=cells if isinstance(cells, int) else 0, done=0)
        case "cell_started" if before and isinstance(number, int):
            return before.model_copy(update={"current": number, "step": None})
        case "cell_finished" if before and isinstance(number, int):
            return before.model_copy(update={"done": number, "current": None, "step": None})
        case "cell_failed" if before and isinstance(number, int):
            # It stays the current one: that is where the notebook stands.
            return before.model_copy(update={"current": number})
        case "progress":
            step = _step(event)
            # A command has no cells, and this is all that it says.
            return (before or ProgressOut(cells=0, done=0)).model_copy(
                update={"step": step or (before.step if before else None)}
            )
        case "state" if event.data.get("state") == "queued":
            return None
        case _:
            return before


def _step(event: EventRecord) -> StepOut | None:
    done = _number(event.data.get("done"))
    if done is None:
        return None
    text = event.data.get("text")
    return StepOut(
        done=done,
        of=_number(event.data.get("of")),
        text=text[:_LONGEST_TEXT] if isinstance(text, str) else "",
    )


def _number(value: Json) -> float | None:
    """It comes from a job: anything may be in it."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None
