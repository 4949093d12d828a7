"""Run the cells of a notebook for a probe, until its progress shows how long the run would take.

``python -m carrel.extensions.advice.notebook_cells ORDER RESULT`` in a process of its own: ORDER
has the sources of the cells, RESULT the times and the peak memory. The run ends by itself after a
few calls of ``carrel.progress``.
"""

from __future__ import annotations

import json
import math
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from statistics import median
from types import FrameType
from typing import Final

from .memory_meter import MemoryMeter, cuda

_MARKS: Final = 4
_SECONDS: Final = 0.5
"""Calls of ``carrel.progress``, and seconds between the first and the last, that are enough."""
_LONG: Final = 10.0
"""After so many seconds two calls are enough."""


class ProbeComplete(BaseException):
    """Enough was seen; not an ``Exception``, which the notebook may catch."""


class ProbeStopped(BaseException):
    """The probe stops this run."""


@dataclass(slots=True, kw_only=True)
class NotebookRun:
    """What was seen of one run.

    Attributes:
        seconds: from the first cell on.
        ended: whether all cells have run.
        marks: seconds and progress of each call of ``carrel.progress`` with a known end.
        of: the progress at the end.
        memory_kind: whose memory was measured: ``device`` or ``process``.
        memory_bytes: its peak; 0 if unknown.
        memory_limit: bytes that the peak may become; 0 if unknown.
        problem: the error of a cell.
        out_of_memory: whether it was one of memory.
    """

    seconds: float = 0.0
    ended: bool = False
    marks: list[tuple[float, float]] = field(default_factory=list)
    of: float = 0.0
    memory_kind: str = "process"
    memory_bytes: int = 0
    memory_limit: int = 0
    problem: str = ""
    out_of_memory: bool = False

    def whole_seconds(self) -> float:
        """Return how long the whole run takes, or would take; 0 if that cannot be said."""
        if self.ended:
            return self.seconds
        unit = self.unit_seconds()
        if not unit:
            return 0.0
        first, done = self.marks[0]
        return first + max(0.0, self.of - done) * unit

    def unit_seconds(self) -> float:
        """Return how long one unit of progress takes; 0 if that cannot be said."""
        rates = [
            (later - sooner) / (done - before)
            for (sooner, before), (later, done) in zip(self.marks, self.marks[1:], strict=False)
            if done > before
        ]
        return median(rates) if rates else 0.0


def run_cells(cells: Sequence[str]) -> NotebookRun:
    """Run the sources in one namespace, as IPython does, and say what was seen."""
    from IPython.core.interactiveshell import InteractiveShell  # noqa: PLC0415  # slow

    found = NotebookRun()
    # As in a kernel: the notebook may import what lies in its folder.
    sys.path.insert(0, "")
    package = import_module("carrel")
    shell = InteractiveShell.instance()
    start = time.perf_counter()

    def progress(done: float, of: float | None = None, text: str = "") -> None:
        del text
        if of is None or not (math.isfinite(of) and math.isfinite(done)) or of <= 0:
            return  # the end is unknown
        device = cuda()
        if device is not None:
            device.synchronize()
        found.of = float(of)
        found.marks.append((time.perf_counter() - start, float(done)))
        since = found.marks[-1][0] - found.marks[0][0]
        enough = len(found.marks) >= _MARKS and since >= _SECONDS
        if enough or (len(found.marks) > 1 and since >= _LONG):
            raise ProbeComplete

    package.progress = progress  # type: ignore[attr-defined]  # what the notebook will import
    try:
        for source in cells:
            done = shell.run_cell(source)  # type: ignore[no-untyped-call]
            error = done.error_before_exec or done.error_in_exec
            if isinstance(error, ProbeComplete | ProbeStopped):
                break
            if error is not None:
                text = " ".join(f"{type(error).__name__}: {error}".split())[:200]
                found.problem = text.removesuffix(":")
                found.out_of_memory = (
                    isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
                )
                break
        else:
            found.ended = True
    except (ProbeComplete, ProbeStopped):
        pass
    found.seconds = time.perf_counter() - start
    meter = MemoryMeter()  # PyTorch may have been imported by a cell
    found.memory_kind, found.memory_bytes = meter.kind, meter.peak()
    with suppress(RuntimeError):  # of a device that has failed
        found.memory_limit = meter.limit()
    return found


def _stop(signal_number: int, frame: FrameType | None) -> None:
    del signal_number, frame
    raise ProbeStopped


def main(order: str, result: str) -> None:
    cells = json.loads(Path(order).read_text(encoding="utf-8"))
    signal.signal(signal.SIGTERM, _stop)
    found = NotebookRun()
    with suppress(ProbeStopped):
        found = run_cells(cells)
    Path(result).write_text(json.dumps(asdict(found)), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:3])
