"""Report on a running job: outputs in small pieces, progress, and omitted output.

The reports are limited in number and size, whatever the job prints: the journal is written to the
job's disk and read by the service.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TypeAlias

from ....hub.attempts.output_limits import OutputLimits
from ....hub.records.json_value import Json
from .outputs import event_output
from .progress import ProgressStep
from .text import KeptText, fold_continued

Report: TypeAlias = Callable[[str, Mapping[str, Json]], None]
"""Receives the kind and the data of an event."""

MERGE_SECONDS = 0.2
_STEP_SECONDS = 0.2
_STEPS_AT_FULL_RATE = 1000
"""After this many steps, the interval grows with the job's age: a day-long job reports some
thousand steps."""


class EventReporter:
    """Reports on the running cell or command; safe to use from any thread."""

    def __init__(
        self, report: Report, limits: OutputLimits, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._report = report
        self._limits = limits
        self._clock = clock
        self._lock = threading.RLock()
        self._cell: tuple[int, int] | None = None
        self._printed: tuple[str, KeptText] | None = None
        self._printed_at = 0.0
        self._overwriting: set[str] = set()
        """Streams whose next text overwrites the last reported line."""
        self._cell_events = 0
        self._job_events = 0
        self._bytes = 0
        self._cut: Counter[str] = Counter()
        self._cut_first: dict[str, int] = {}
        self._step: ProgressStep | None = None
        self._step_at = 0.0
        self._steps = 0
        self._started = clock()

    def cell(self, index: int, number: int | None) -> None:
        """Set the cell to which the next outputs belong; the injected cell has no number."""
        with self._lock:
            self._cell = None if number is None else (index, number)
            self._cell_events = 0
            self._overwriting.clear()
            self._step = None

    def settle(self) -> None:
        """Report all output that is held back; called when the cell or command has ended."""
        with self._lock:
            self._flush()
            self._report_step()

    def saved(self) -> None:
        """Report that the job has saved its work: a stop now loses no work."""
        self._report("saved", {})

    def tick(self) -> None:
        """Report the output that has been held back for long enough."""
        with self._lock:
            now = self._clock()
            if self._printed is not None and now - self._printed_at >= MERGE_SECONDS:
                self._flush()
            if self._step is not None and now - self._step_at >= self._step_pause(now):
                self._report_step()

    def print(self, name: str, text: str, missing: int = 0) -> None:
        """Report text of a stream.

        Args:
            missing: bytes that the kernel left out before this text.
        """
        with self._lock:
            if self._cell is None:
                return
            if self._printed is not None and self._printed[0] != name:
                self._flush()
            if self._printed is None:
                self._printed = (name, KeptText(self._limits.event_text))
                self._printed_at = self._clock()
            if missing:
                self._printed[1].skip(missing, lambda _: None)
            self._printed[1].add(text, lambda _: None)
            self.tick()

    def output(self, output: Mapping[str, Json]) -> None:
        """Report a rich output, or an error."""
        with self._lock:
            self._flush()
            self._report_output(output)

    def step(self, step: ProgressStep) -> None:
        with self._lock:
            self._step = step
            self.tick()

    def cut(self, what: str, size: int) -> None:
        """Report omitted output: when it begins, once per kind, and in total at the end."""
        with self._lock:
            if what not in self._cut:
                self._cut_first[what] = size
                self._report("cut", {"what": what, "bytes": size})
            self._cut[what] += size

    def end(self) -> None:
        """Report the totals of omitted output; called when the job has ended."""
        with self._lock:
            self.settle()
            for what, size in self._cut.items():
                if size > self._cut_first[what]:
                    self._report("cut", {"what": what, "bytes": size, "all": True})

    # -- private --------------------------------------------------------------------------

    def _flush(self) -> None:
        if self._printed is not None:
            name, kept = self._printed
            self._printed = None
            text = fold_continued(("\r" if name in self._overwriting else "") + kept.text)
            shown = text.rstrip("\r")
            self._overwriting.discard(name)
            if shown != text:
                self._overwriting.add(name)
            if shown:
                self._report_output({"output_type": "stream", "name": name, "text": shown})

    def _report_output(self, output: Mapping[str, Json]) -> None:
        if self._cell is None:
            return
        index, number = self._cell
        small = event_output(output, self._limits)
        size = len(json.dumps(small))
        if (
            self._cell_events >= self._limits.cell_events
            or self._job_events >= self._limits.job_events
            or self._bytes + size > self._limits.events
        ):
            return self.cut("events", size)
        self._cell_events += 1
        self._job_events += 1
        self._bytes += size
        self._report("cell_output", {"index": index, "number": number, "output": small})

    def _step_pause(self, now: float) -> float:
        if self._steps < _STEPS_AT_FULL_RATE:
            return _STEP_SECONDS
        return max(_STEP_SECONDS, (now - self._started) / _STEPS_AT_FULL_RATE)

    def _report_step(self) -> None:
        if self._step is None:
            return
        step, self._step = self._step, None
        self._step_at = self._clock()
        self._steps += 1
        number: dict[str, Json] = {} if self._cell is None else {"number": self._cell[1]}
        of: dict[str, Json] = {} if step.of is None else {"of": step.of}
        self._report("progress", {**number, "done": step.done, **of, "text": step.text})
