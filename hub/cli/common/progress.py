"""Progress of requests: printed lines, and in a terminal one line that is rewritten.

Output of jobs is printed without control characters, so that it cannot control the terminal.
"""

from __future__ import annotations

import codecs
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TextIO

import click
from pydantic import JsonValue

from ...client.job_watch import JobUpdate
from ...messages import requests as request_messages
from ...messages import units
from ...schemas import EventOut, RequestOut
from . import display
from .terminal import plain

_CLEAR = "\r\x1b[K"
_BAR = 24
_PLAIN_PROGRESS_SECONDS = 10.0


class ProgressPrinter(Protocol):
    """Prints the updates of requests."""

    def show(self, change: JobUpdate) -> None:
        """Print an update; called in order."""

    def close(self) -> None:
        """Finish the output."""


class JsonProgressPrinter:
    """Prints one JSON object per line: requests, and with ``events`` their events and logs."""

    def __init__(self, *, events: bool) -> None:
        self._events = events
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def show(self, change: JobUpdate) -> None:
        if isinstance(change.item, RequestOut) or (change.item and self._events):
            display.as_json(change.item)
        elif text := self._decoder.decode(change.printed):
            display.as_json({"request_id": change.request_id, "text": text})

    def close(self) -> None:
        pass


@dataclass(slots=True, kw_only=True)
class _Printed:
    """The state of one request that was printed last."""

    place: str = ""
    cells: int = 0
    cell: int = 0
    cell_began: float = 0.0
    step: str = ""
    step_printed_at: float = 0.0
    decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )


class LineProgressPrinter:
    """Prints text: changes of state, and with ``events`` cells with their outputs.

    ``live`` is a terminal in which the last line is rewritten; None for plain lines.
    """

    def __init__(
        self,
        *,
        events: bool,
        several: bool,
        live: TextIO | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._events, self._several, self._live, self._clock = events, several, live, clock
        self._printed: dict[str, _Printed] = {}
        self._drawn = ""
        self._unfinished = False

    def show(self, change: JobUpdate) -> None:
        seen = self._printed.setdefault(change.request_id, _Printed())
        match change.item:
            case RequestOut() as request:
                self._status(seen, request)
            case EventOut() as event if self._events:
                self._event(seen, event)
            case None:
                self._print(plain(seen.decoder.decode(change.printed)))
        self._draw(seen)

    def close(self) -> None:
        self._erase()
        if self._unfinished:
            click.echo()

    def _status(self, seen: _Printed, request: RequestOut) -> None:
        # Changes of estimates are not printed; cells have their own lines.
        following = self._events and request.state == "running" and bool(request.progress)
        place = request_messages.state_name(request.state) if following else display.place(request)
        if place != seen.place or request.ended:
            seen.place = place
            self._write(display.change(request, self._clock()))
        if request.ended:
            seen.cell, seen.step = 0, ""
            if self._events and request.cause and request.cause.details:
                self._write(plain(request.cause.details))

    def _event(self, seen: _Printed, event: EventOut) -> None:
        data = event.data
        match event.kind:
            case "cells":
                seen.cells = _whole(data, "cells")
            case "cell_started":
                seen.cell, seen.cell_began, seen.step = _whole(data, "number"), event.at, ""
                if self._live is None:
                    self._line(event, f"{self._cell(seen)} started")
            case "cell_output":
                self._write(plain(output_text(data.get("output"))).removesuffix("\n"))
            case "cell_failed":
                self._line(event, f"{self._cell(seen)} failed: {_text(data, 'ename')}")
                self._write(plain(_text(data, "traceback") or _text(data, "evalue")))
            case "cell_finished":
                seconds = units.duration(_number(data, "seconds"))
                self._line(event, f"{self._cell(seen)} finished in {seconds}")
                seen.cell, seen.step = 0, ""
            case "progress":
                self._progress(seen, event)
            case "cut":
                begin = "cut in all" if data.get("all") is True else "cut"
                size = units.size(_number(data, "bytes"))
                self._line(event, f"{begin}: {plain(_text(data, 'what'))}, {size}")

    def _progress(self, seen: _Printed, event: EventOut) -> None:
        done, of = _number(event.data, "done"), event.data.get("of")
        whole = float(of) if isinstance(of, int | float) and of else 0.0
        amount = f"{done:g}/{whole:g}" if whole else f"{done:g}"
        bar = ""
        if whole:
            full = round(_BAR * min(1.0, max(0.0, done / whole)))
            bar = "█" * full + "░" * (_BAR - full) + " "
        seen.step = f"{bar}{amount} {plain(_text(event.data, 'text'))}".rstrip()
        # Without a terminal a few of these lines are enough.
        due = event.at - seen.step_printed_at >= _PLAIN_PROGRESS_SECONDS
        if self._live is None and (due or (whole and done >= whole)):
            seen.step_printed_at = event.at
            self._line(event, seen.step.removeprefix(bar))

    def _line(self, event: EventOut, text: str) -> None:
        name = f"{event.request_id}  " if self._several else ""
        self._write(f"{display.clock_time(event.at)}  {name}{text}")

    def _cell(self, seen: _Printed) -> str:
        return f"cell {seen.cell}" + (f" of {seen.cells}" if seen.cells else "")

    def _write(self, text: str) -> None:
        """Print whole lines."""
        if text:
            self._erase()
            click.echo(("\n" if self._unfinished else "") + text)
            self._unfinished = False

    def _print(self, text: str) -> None:
        """Print text that may end within a line."""
        if text:
            self._erase()
            click.echo(text, nl=False)
            self._unfinished = not text.endswith("\n")

    def _draw(self, seen: _Printed) -> None:
        if self._live is None or not self._events or self._unfinished:
            return
        parts = [self._cell(seen)] if seen.cell else []
        if seen.cell:
            parts.append(units.duration(max(0.0, self._clock() - seen.cell_began)))
        parts += [seen.step] if seen.step else []
        line = "  ".join(parts)[: max(20, shutil.get_terminal_size().columns - 1)]
        if line != self._drawn:
            self._live.write(_CLEAR + line)
            self._live.flush()
            self._drawn = line

    def _erase(self) -> None:
        if self._live is not None and self._drawn:
            self._live.write(_CLEAR)
            self._live.flush()
            self._drawn = ""


def output_text(output: JsonValue) -> str:
    """Return an output of a notebook as text, or a placeholder."""
    if not isinstance(output, dict):
        return ""
    if output.get("output_type") == "stream":
        return _joined(output.get("text"))
    if output.get("output_type") == "error":
        return ""  # part of `cell_failed`
    data = output.get("data")
    if not isinstance(data, dict) or not data:
        return ""
    plain = _joined(data.get("text/plain"))
    shown = [kind for kind in data if kind.startswith(("image/", "text/html"))]
    note = f"[{', '.join(shown)}] " if shown else ""
    return f"{note}{plain}\n" if plain or note else ""


def _joined(text: JsonValue) -> str:
    return "".join(str(part) for part in text) if isinstance(text, list) else str(text or "")


def _text(data: Mapping[str, JsonValue], name: str) -> str:
    return str(data.get(name) or "")


def _number(data: Mapping[str, JsonValue], name: str) -> float:
    value = data.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def _whole(data: Mapping[str, JsonValue], name: str) -> int:
    return int(_number(data, name))
