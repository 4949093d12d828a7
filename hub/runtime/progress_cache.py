"""Compute the progress of jobs from their events, and cache it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from ..interfaces.store import Store
from ..records.events import EventRecord
from ..records.requests import RequestRecord
from ..scheduling.model.snapshot import Kind
from ..schemas import ProgressOut, StepOut
from .cell_progress import CellProgress, cells_after
from .reported_loops import ReportedLoops, loops_after
from .step_progress import StepProgress, finite_number, steps_after

MAX_REQUESTS = 2000
"""Number of requests that are kept beside those that run."""
_PAGE = 1000
_LONGEST_TEXT = 200
PROGRESS_KINDS = frozenset(
    {
        "cells",
        "resumed",
        "cell_started",
        "cell_failed",
        "cell_finished",
        "progress",
        "ended",
        "state",
    }
)
"""The kinds of events that progress is computed from; the output of cells is not read."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a request up to an event."""

    last: int = 0
    progress: ProgressOut | None = None
    cells: CellProgress | None = None
    steps: StepProgress | None = None
    loops: ReportedLoops | None = None

    def after(self, event: EventRecord) -> _Known:
        return _Known(
            event.id,
            progress_after(self.progress, event),
            cells_after(self.cells, event),
            steps_after(self.steps, event),
            loops_after(self.loops, event),
        )


class ProgressCache:
    """A bounded cache; after a restart, progress is computed from the stored events again."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._most = MAX_REQUESTS
        self._lock = threading.Lock()

    def reserve(self, running: int) -> None:
        """Keep so many running requests, too: all of them are looked up again and again."""
        self._most = MAX_REQUESTS + running

    def add(self, event: EventRecord) -> None:
        """Update the cached progress of a request with a new event; ``of`` reads uncached ones."""
        with self._lock:
            known = self._known.get(event.request_id)
            if known is not None and event.id > known.last:
                self._known[event.request_id] = known.after(event)

    def requeued(self, request_id: str) -> None:
        """Drop the progress of a requeued request, whose ``state`` event bypasses ``add``."""
        with self._lock:
            self._known.pop(request_id, None)

    def of(self, record: RequestRecord) -> ProgressOut | None:
        """Return the progress of a job; None for sessions and before the first event."""
        return self._of(record).progress

    def cells_of(self, record: RequestRecord) -> CellProgress | None:
        """Return the cells of the newest attempt of a notebook job; None for anything else."""
        return self._of(record).cells

    def steps_of(self, record: RequestRecord) -> StepProgress | None:
        """Return the longest loop with progress of the newest attempt; None without one."""
        found = self._of(record).steps
        if found is None or record.lease is None or found.epoch != record.lease.epoch:
            return None
        return found.longest_loop

    def loops_of(self, record: RequestRecord) -> ReportedLoops | None:
        """Return the loops that the newest cell, or the command, of the newest attempt reports."""
        found = self._of(record).loops
        if found is None or record.lease is None or found.epoch != record.lease.epoch:
            return None
        return found

    def _of(self, record: RequestRecord) -> _Known:
        if record.kind is Kind.SESSION or record.lease is None:
            return _Known()
        with self._lock:
            if record.id not in self._known:
                self._known[record.id] = self._read(record.id)
                while len(self._known) > self._most:
                    self._known.popitem(last=False)
            self._known.move_to_end(record.id)
            return self._known[record.id]

    def _read(self, request_id: str) -> _Known:
        known = _Known()
        while events := self._store.events(
            request_id, after=known.last, limit=_PAGE, kinds=PROGRESS_KINDS
        ):
            for event in events:
                known = known.after(event)
        return known


def progress_after(before: ProgressOut | None, event: EventRecord) -> ProgressOut | None:
    """Return the progress after one more event; a new attempt starts from the beginning."""
    number = event.data.get("number")
    match event.kind:
        case "cells":
            cells = event.data.get("cells")
            return ProgressOut(cells=cells if isinstance(cells, int) else 0, done=0)
        case "resumed" if before:
            cells = event.data.get("cells")
            return before.model_copy(update={"done": cells if isinstance(cells, int) else 0})
        case "cell_started" if before and isinstance(number, int):
            return before.model_copy(update={"current": number, "step": None})
        case "cell_finished" if before and isinstance(number, int):
            return before.model_copy(update={"done": number, "current": None, "step": None})
        case "cell_failed" if before and isinstance(number, int):
            # The notebook stopped at this cell, so it remains the current one.
            return before.model_copy(update={"current": number})
        case "progress":
            step = _step(event)
            # A command has no cells and reports only steps.
            return (before or ProgressOut(cells=0, done=0)).model_copy(
                update={"step": step or (before.step if before else None)}
            )
        case "state" if event.data.get("state") == "queued":
            return None
        case _:
            return before


def _step(event: EventRecord) -> StepOut | None:
    done = finite_number(event.data.get("done"))
    if done is None:
        return None
    text = event.data.get("text")
    return StepOut(
        done=done,
        of=finite_number(event.data.get("of")),
        text=text[:_LONGEST_TEXT] if isinstance(text, str) else "",
    )
