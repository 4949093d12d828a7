"""Timeline of a job on its page, from its stored events: attempts, cells, outputs.

A newly opened page contains all stored events; later events are appended as pieces, so that nothing
is sent twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from ....messages.units import memory
from ....scheduling.model.states import State
from ....schemas import EventOut
from ...html.ansi import coloured, plain
from ...html.cell_output import OutputForm, Shown, join, shown

_CELL_TEXT = 64 * 1024
_CELL_OUTPUTS = 100
_ACTIVE = frozenset({State.GRANTED, State.STARTING, State.RUNNING, State.STOPPING})


@dataclass(slots=True, kw_only=True)
class CellTimeline:
    """A code cell of one attempt.

    Attributes:
        number: position among the code cells, from 1.
        state: running, done, failed, or stopped by the end of its attempt.
        left_out: number of outputs that only the notebook has.
    """

    epoch: int
    number: int
    state: str = "running"
    started_at: float | None = None
    seconds: float | None = None
    outputs: list[Shown] = field(default_factory=list)
    left_out: int = 0

    @property
    def key(self) -> str:
        """The key for ids within the page."""
        return f"{self.epoch}-{self.number}"

    def add(self, output: Shown) -> None:
        last = self.outputs[-1] if self.outputs else None
        if last is not None and _continues(last, output):
            self.outputs[-1] = replace(last, text=join(last.text, output))
        else:
            self.outputs.append(output)
        while self.outputs and self._exceeds_limits():
            if len(self.outputs) == 1:
                self.outputs[0] = replace(self.outputs[0], text=self.outputs[0].text[-_CELL_TEXT:])
                self.left_out = max(self.left_out, 1)
                return
            del self.outputs[0]
            self.left_out += 1

    def _exceeds_limits(self) -> bool:
        text = sum(len(output.text) for output in self.outputs)
        return len(self.outputs) > _CELL_OUTPUTS or text > _CELL_TEXT


@dataclass(slots=True, kw_only=True)
class AttemptTimeline:
    """One attempt of the job."""

    epoch: int
    moves: list[EventOut] = field(default_factory=list)
    cells: dict[int, CellTimeline] = field(default_factory=dict)
    cuts: list[str] = field(default_factory=list)

    def stop(self) -> list[CellTimeline]:
        """End the attempt; return its unfinished cells."""
        for cell in self.cells.values():
            if cell.state == "running":
                cell.state = "stopped"
        return [cell for cell in self.cells.values() if cell.state == "stopped"]


@dataclass(slots=True, kw_only=True)
class JobTimeline:
    """The history of a job from its stored events."""

    attempts: dict[int, AttemptTimeline] = field(default_factory=dict)
    last_id: int = 0

    @classmethod
    def of(cls, events: Iterable[EventOut]) -> JobTimeline:
        made = cls()
        for event in events:
            made.add(event)
        return made

    @property
    def epoch(self) -> int:
        return max(self.attempts, default=0)

    def add(self, event: EventOut) -> None:
        self.last_id = event.id
        if event.epoch < 1:
            return  # before the first attempt: the state shows it
        attempt = self.attempts.setdefault(event.epoch, AttemptTimeline(epoch=event.epoch))
        number = cell_number(event)
        match event.kind:
            case "state":
                attempt.moves.append(event)
                if is_over(event):
                    attempt.stop()
            case "cut":
                attempt.cuts.append(cut_sentence(event))
            case "cell_started" | "cell_output" | "cell_failed" | "cell_finished" if number:
                found = attempt.cells.setdefault(
                    number, CellTimeline(epoch=event.epoch, number=number)
                )
                fold(found, event)


def fold(cell: CellTimeline, event: EventOut) -> Shown | None:
    """Apply one event to its cell; return the output of the event."""
    match event.kind:
        case "cell_started":
            cell.started_at = event.at
        case "cell_output":
            output = shown(event.id, event.data.get("output"))
            if output is not None:
                cell.add(output)
            return output
        case "cell_failed":
            # KeyboardInterrupt: the job was cancelled, or reached its time limit.
            interrupted = event.data.get("ename") == "KeyboardInterrupt"
            cell.state = "stopped" if interrupted else "failed"
            if cell.started_at is not None:
                cell.seconds = max(0.0, event.at - cell.started_at)
            if interrupted or any(before.form is OutputForm.ERROR for before in cell.outputs):
                return None  # not an error of the notebook, or already shown as an output
            output = failure(event)
            cell.add(output)
            return output
        case "cell_finished":
            cell.seconds = _number(event.data.get("seconds"))
            if cell.state == "running":
                cell.state = "done"
    return None


def is_over(event: EventOut) -> bool:
    """Return whether this change of state ends the attempt."""
    return event.kind == "state" and event.data.get("state") not in _ACTIVE


def failure(event: EventOut) -> Shown:
    """Return the traceback of a failed cell."""
    traceback = event.data.get("traceback") or (
        f"{event.data.get('ename', 'Error')}: {event.data.get('evalue', '')}"
    )
    return Shown(form=OutputForm.ERROR, event_id=event.id, text=coloured(str(traceback)))


def cell_number(event: EventOut) -> int | None:
    number = event.data.get("number")
    return number if isinstance(number, int) and number > 0 else None


def cut_sentence(event: EventOut) -> str:
    """Return a sentence about output that was left out, and its size."""
    size = event.data.get("bytes")
    what = plain(str(event.data.get("what", "output")))[:200]
    begin = "Cut in all" if event.data.get("all") is True else "Cut"
    if isinstance(size, int) and size >= 1 << 20:
        return f"{begin}: {what} ({memory(size)})."
    return f"{begin}: {what} ({size} bytes)." if isinstance(size, int) else f"{begin}: {what}."


def _continues(last: Shown, output: Shown) -> bool:
    return (
        output.form is OutputForm.STREAM
        and last.form is OutputForm.STREAM
        and last.name == output.name
    )


def _number(value: JsonValue) -> float | None:
    return float(value) if isinstance(value, int | float) else None
