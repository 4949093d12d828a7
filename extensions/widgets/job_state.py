"""The state of one job for a view, composed from its status and its stored events."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pydantic import JsonValue

from ...hub.client import Client
from ...hub.errors import CarrelError, NotFound, Unavailable
from ...hub.messages import requests, units
from ...hub.messages.timed_text import as_json, expected_start
from ...hub.schemas import EventOut, RequestOut
from ...hub.schemas.sweeps import SweepOut
from ..job_text import active_signs, device_name, title
from .report_state import ReportReader
from .stream_feeds import Snapshot

TAIL_CHARACTERS = 16_000
TAIL_LINES = 200
RETRY_SECONDS = 2.0
"""Pause after the service did not answer."""
COMMAND_LOG_SECONDS = 1.0
"""A command's log has no events: it is read at this interval while the command runs."""
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")
_CANCELLABLE = frozenset({"queued", "granted", "starting", "running"})


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
    """The end of the output, with carriage returns applied and colours removed."""

    text: str = ""

    def add(self, printed: str) -> None:
        text = self.text + _ESCAPES.sub("", printed).replace("\r\n", "\n")
        if "\r" in text:
            lines = text.split("\n")
            # The last line keeps a trailing carriage return: the next text overwrites it.
            text = "\n".join(_overwritten(line) for line in lines)
        lines = text[-TAIL_CHARACTERS:].split("\n")
        self.text = "\n".join(lines[-TAIL_LINES:])


def _overwritten(line: str) -> str:
    ends = "\r" if line.endswith("\r") else ""
    return line.rstrip("\r").rpartition("\r")[2] + ends


@dataclass(slots=True)
class JobState:
    """The state of a job; ``apply`` updates it from the stream. No I/O."""

    request: RequestOut | None = None
    epoch: int = 0
    total: int = 0
    cells: dict[int, CellState] = field(default_factory=dict)
    step: dict[str, JsonValue] | None = None
    tail: Tail = field(default_factory=Tail)
    last_event: int = 0

    def apply(self, item: RequestOut | EventOut) -> None:
        if isinstance(item, RequestOut):
            self.request = item
            if item.progress is not None:
                self.total = max(self.total, item.progress.cells)
            return
        self.last_event = max(self.last_event, item.id)
        if item.epoch > self.epoch:
            # A new attempt starts at the first cell.
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
        """The number of finished cells, without a cell that failed or was interrupted."""
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
        self._ended = threading.Event()
        self._reader: threading.Thread | None = None
        self._reports = ReportReader(client, request_id)

    def follow(self, changed: Callable[[], None]) -> None:
        while not self._ended.is_set():
            try:
                for item in self._client.follow(self._id, self._state.last_event):
                    with self._lock:
                        self._away = False
                        self._state.apply(item)
                    changed()
                    if isinstance(item, RequestOut):
                        self._follow_command_log(item, changed)
                        self._reports.follow(item, changed)
                self._ended.set()
            except Unavailable as error:
                self._report(str(error), away=True, changed=changed)
                self._ended.wait(RETRY_SECONDS)
            except CarrelError as error:
                self._report(str(error), away=False, changed=changed)
                self._ended.set()
        self._read_missing_log()
        self._reports.finish(self._state.request)

    def snapshot(self) -> Snapshot:
        with self._lock:
            state = self._state
            request = state.request
            cells = [state.cells[number].plain() for number in sorted(state.cells)]
            running = [cell["number"] for cell in cells if cell["state"] == "runs"]
            ended = request is not None and request.ended
            return {
                "job": job_facts(request) if request else None,
                "cells": list(cells),
                "progress": {
                    "total": max(state.total, len(cells)),
                    "done": state.done,
                    "current": None if ended or not running else running[-1],
                    "step": None if ended else state.step,
                },
                "log": state.tail.text.rstrip("\r"),
                "reports": list(self._reports.curves),
                "compilations": list(self._reports.compilations),
                "problem": self._problem if request is None or self._away else "",
                "away": self._away,
            }

    def _report(self, sentence: str, *, away: bool, changed: Callable[[], None]) -> None:
        with self._lock:
            self._problem, self._away = sentence, away
        changed()

    def _follow_command_log(self, request: RequestOut, changed: Callable[[], None]) -> None:
        if request.command and request.state == "running" and self._reader is None:
            self._reader = threading.Thread(
                target=self._read_log, args=(changed,), name="carrel-log", daemon=True
            )
            self._reader.start()

    def _read_log(self, changed: Callable[[], None]) -> None:
        offset, attempt = 0, self._attempt()
        while True:
            ended = self._ended.is_set()
            if attempt != self._attempt():
                # A new attempt has a new log.
                offset, attempt = 0, self._attempt()
                with self._lock:
                    self._state.tail = Tail()
            try:
                part = self._client.log(self._id, offset)
            except CarrelError:
                return  # the rest is read at the end
            offset = part.next_offset
            if part.content:
                with self._lock:
                    self._state.tail.add(part.content.decode(errors="replace"))
                changed()
            elif ended:
                return
            self._ended.wait(COMMAND_LOG_SECONDS)

    def _attempt(self) -> int | None:
        request = self._state.request
        return request.lease.epoch if request is not None and request.lease is not None else None

    def _read_missing_log(self) -> None:
        """Read the log of a command, or of a job that failed before its first cell."""
        if self._reader is not None:
            self._reader.join(timeout=RETRY_SECONDS)
        if self._state.request is None or self._state.tail.text:
            return
        try:
            printed = b"".join(self._client.whole_log(self._id))
        except (NotFound, Unavailable):
            return
        with self._lock:
            self._state.tail.add(printed.decode(errors="replace"))


def job_facts(request: RequestOut) -> dict[str, JsonValue]:
    """Return what does not come from events, as text where a view shows text."""
    wait, cause, now = request.wait, request.cause, time.time()
    # A requeued job has no lease, and does not run.
    queued = request.state == "queued"
    lease = None if queued else request.lease
    return {
        "id": request.id,
        "title": title(request) or request.id,
        "kind": "command" if request.command else request.kind,
        "state": request.state,
        "state_name": requests.state_name(request.state),
        "meaning": requests.state_meaning(request.state),
        "owner": request.owner,
        "group": request.group,
        "labels": dict(request.labels),
        "devices": [device_name(each) for each in lease.devices] if lease else [],
        "devices_text": units.devices(request.devices, request.model),
        "trials_text": _trials_text(request.sweep),
        "seconds": request.seconds,
        "submitted_at": request.submitted_at,
        "started_at": None if queued else request.started_at,
        "ended_at": request.ended_at,
        "ends_by": request.ends_by,
        "remaining": request.remaining.sentence if request.remaining else "",
        "attempt": request.lease.epoch if request.lease else 0,
        "wait": wait.model_dump(mode="json") if wait else None,
        "expected": as_json(expected_start(wait, now)) if wait else [],
        "cause": cause.model_dump(mode="json") if cause else None,
        "warning": request.warning.model_dump(mode="json") if request.warning else None,
        "signs": list(active_signs(request)),
        "has_output": bool(request.output and request.lease is not None and not request.command),
        "can_cancel": request.state in _CANCELLABLE,
        "ended": request.ended,
        "seen_at": now,
    }


def _trials_text(sweep: SweepOut | None) -> str:
    return "" if sweep is None or not sweep.together else units.trained_as_one(sweep.trials)


def _int(value: JsonValue) -> int:
    return value if isinstance(value, int) else 0


def _text_of(output: JsonValue) -> str:
    """Return the text of an output for the log: printed text, or the value's text form."""
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
