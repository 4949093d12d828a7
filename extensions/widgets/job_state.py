"""The life of one job as a view shows it: put together from its status and its stored events."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pydantic import JsonValue

from ...hub.client import Client
from ...hub.errors import CarrelError, NotFound, Unavailable
from ...hub.messages.requests import state_meaning, state_name
from ...hub.messages.timed_text import as_json, expected_start
from ...hub.messages.units import devices as devices_text
from ...hub.schemas import DeviceOut, EventOut, RequestOut
from ..job_text import what
from .stream_feeds import Snapshot

TAIL_CHARACTERS = 16_000
TAIL_LINES = 200
AGAIN_SECONDS = 2.0
"""Pause before the service is asked again after it stayed away."""
COMMAND_LOG_SECONDS = 1.0
"""A command's log has no events of its own: it is read while the command runs."""
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")
_STOPPABLE = frozenset({"queued", "granted", "starting", "running"})


@dataclass(slots=True)
class CellState:
    """One code cell; ``state`` is runs, done or failed."""

    number: int
    state: str
    started_at: float
    seconds: float | None = None
    note: str = ""

    def plain(self) -> dict[str, JsonValue]:
        return {
            "number": self.number,
            "state": self.state,
            "started_at": self.started_at,
            "seconds": self.seconds,
            "note": self.note,
        }


@dataclass(slots=True)
class Tail:
    """The end of what was printed, with carriage returns acted out and colours left out."""

    text: str = ""

    def add(self, printed: str) -> None:
        text = self.text + _ESCAPES.sub("", printed).replace("\r\n", "\n")
        if "\r" in text:
            lines = text.split("\n")
            # The last line keeps a final carriage return: what comes next overwrites it.
            text = "\n".join(_overwritten(line) for line in lines)
        lines = text[-TAIL_CHARACTERS:].split("\n")
        self.text = "\n".join(lines[-TAIL_LINES:])


def _overwritten(line: str) -> str:
    ends = "\r" if line.endswith("\r") else ""
    return line.rstrip("\r").rpartition("\r")[2] + ends


@dataclass(slots=True)
class JobState:
    """What is known of a job; ``take`` folds in what the stream says. No I/O."""

    request: RequestOut | None = None
    epoch: int = 0
    total: int = 0
    cells: dict[int, CellState] = field(default_factory=dict)
    step: dict[str, JsonValue] | None = None
    tail: Tail = field(default_factory=Tail)
    last_event: int = 0

    def take(self, item: RequestOut | EventOut) -> None:
        if isinstance(item, RequestOut):
            self.request = item
            if item.progress is not None:
                self.total = max(self.total, item.progress.cells)
            return
        self.last_event = max(self.last_event, item.id)
        if item.epoch > self.epoch:
            # A new attempt begins from the first cell.
            self.epoch, self.total, self.step = item.epoch, 0, None
            self.cells, self.tail = {}, Tail()
        self._event(item)

    def _event(self, event: EventOut) -> None:
        data = event.data
        number = _int(data.get("number"))
        match event.kind:
            case "cells":
                self.total = _int(data.get("cells"))
            case "cell_started":
                self.step = None
                self.cells[number] = CellState(number=number, state="runs", started_at=event.at)
            case "cell_output":
                self.tail.add(_text_of(data.get("output")))
            case "cell_failed":
                cell = self._cell(number, event.at)
                cell.state = "failed"
                cell.note = f"{data.get('ename', '')}: {data.get('evalue', '')}"
            case "cell_finished":
                cell = self._cell(number, event.at)
                cell.state = "failed" if cell.state == "failed" else "done"
                seconds = data.get("seconds")
                cell.seconds = float(seconds) if isinstance(seconds, int | float) else None
                self.step = None
            case "progress":
                self.step = {name: data.get(name) for name in ("done", "of", "text")}
            case "ended":
                self.step = None

    @property
    def done(self) -> int:
        """Cells that came to their end; the one that failed or was interrupted did not."""
        return sum(cell.state == "done" for cell in self.cells.values())

    def _cell(self, number: int, at: float) -> CellState:
        return self.cells.setdefault(number, CellState(number=number, state="runs", started_at=at))


class JobViewState:
    """Follows one job through the service."""

    def __init__(self, client: Client, request_id: str) -> None:
        self._client = client
        self._id = request_id
        self._lock = threading.Lock()
        self._state = JobState()
        self._problem = ""
        self._away = False
        self._over = threading.Event()
        self._reader: threading.Thread | None = None

    def follow(self, told: Callable[[], None]) -> None:
        while not self._over.is_set():
            try:
                for item in self._client.follow(self._id, self._state.last_event):
                    with self._lock:
                        self._away = False
                        self._state.take(item)
                    told()
                    if isinstance(item, RequestOut):
                        self._log_of_a_command(item, told)
                self._over.set()
            except Unavailable as error:
                self._say(str(error), away=True, told=told)
                self._over.wait(AGAIN_SECONDS)
            except CarrelError as error:
                self._say(str(error), away=False, told=told)
                self._over.set()
        self._log_where_nothing_was_told()

    def snapshot(self) -> Snapshot:
        with self._lock:
            state = self._state
            request = state.request
            cells = [state.cells[number].plain() for number in sorted(state.cells)]
            running = [cell["number"] for cell in cells if cell["state"] == "runs"]
            over = request is not None and request.ended
            return {
                "job": job_facts(request) if request else None,
                "cells": list(cells),
                "progress": {
                    "total": max(state.total, len(cells)),
                    "done": state.done,
                    "current": None if over or not running else running[-1],
                    "step": None if over else state.step,
                },
                "log": state.tail.text.rstrip("\r"),
                "problem": self._problem if request is None or self._away else "",
                "away": self._away,
            }

    def _say(self, sentence: str, *, away: bool, told: Callable[[], None]) -> None:
        with self._lock:
            self._problem, self._away = sentence, away
        told()

    def _log_of_a_command(self, request: RequestOut, told: Callable[[], None]) -> None:
        if request.command and request.state == "running" and self._reader is None:
            self._reader = threading.Thread(
                target=self._read_log, args=(told,), name="carrel-log", daemon=True
            )
            self._reader.start()

    def _read_log(self, told: Callable[[], None]) -> None:
        offset = 0
        while True:
            over = self._over.is_set()
            try:
                part = self._client.log(self._id, offset)
            except CarrelError:
                return  # what is missing is read at the end
            offset = part.next_offset
            if part.content:
                with self._lock:
                    self._state.tail.add(part.content.decode(errors="replace"))
                told()
            elif over:
                return
            self._over.wait(COMMAND_LOG_SECONDS)

    def _log_where_nothing_was_told(self) -> None:
        """The end of a command, and of a job that failed before its first cell."""
        if self._reader is not None:
            self._reader.join(timeout=AGAIN_SECONDS)
        if self._state.request is None or self._state.tail.text:
            return
        try:
            printed = b"".join(self._client.whole_log(self._id))
        except (NotFound, Unavailable):
            return
        with self._lock:
            self._state.tail.add(printed.decode(errors="replace"))


def job_facts(request: RequestOut) -> dict[str, JsonValue]:
    """What does not come from events, in words where a view shows words."""
    wait, cause, now = request.wait, request.cause, time.time()
    # What came back to the queue holds nothing, and does not run.
    waits = request.state == "queued"
    lease = None if waits else request.lease
    return {
        "id": request.id,
        "title": what(request) or request.id,
        "kind": "command" if request.command else request.kind,
        "state": request.state,
        "state_name": state_name(request.state),
        "meaning": state_meaning(request.state),
        "owner": request.owner,
        "group": request.group,
        "labels": dict(request.labels),
        "devices": [device_words(each) for each in lease.devices] if lease else [],
        "devices_text": devices_text(request.devices, request.model),
        "seconds": request.seconds,
        "submitted_at": request.submitted_at,
        "started_at": None if waits else request.started_at,
        "ended_at": request.ended_at,
        "ends_by": request.ends_by,
        "attempt": request.lease.epoch if request.lease else 0,
        "wait": wait.model_dump(mode="json") if wait else None,
        "expected": as_json(expected_start(wait, now)) if wait else [],
        "cause": cause.model_dump(mode="json") if cause else None,
        "warning": request.warning.model_dump(mode="json") if request.warning else None,
        "has_output": bool(request.output and request.lease is not None and not request.command),
        "can_cancel": request.state in _STOPPABLE,
        "ended": request.ended,
        "seen_at": now,
    }


def device_words(device: DeviceOut) -> str:
    mark = " (simulated)" if device.simulated else ""
    return f"{device.model} #{device.index}{mark}"


def _int(value: JsonValue) -> int:
    return value if isinstance(value, int) else 0


def _text_of(output: JsonValue) -> str:
    """What of an output can stand in a log: printed text, else the text form of the value."""
    if not isinstance(output, dict):
        return ""
    match output.get("output_type"):
        case "stream":
            return _joined(output.get("text"))
        case "error":
            return _joined(output.get("evalue")) + "\n"
        case _:
            data = output.get("data")
            text = _joined(data.get("text/plain")) if isinstance(data, dict) else ""
            return text + "\n" if text else ""


def _joined(text: JsonValue) -> str:
    if isinstance(text, list):
        return "".join(part for part in text if isinstance(part, str))
    return text if isinstance(text, str) else ""
