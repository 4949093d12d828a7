"""The first process of a cage: it obeys the outside, and no student's code ever runs in it.

It starts the kernel, keeps its snapshots, holds every cell to its time and its output, and ends
all that the student's code started before anything hidden comes in. Other processes of its user
can neither look into it nor kill it: it is the init of its process namespace.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn

from . import isolation, processes
from .cell_output import CellOutput
from .command import GRACE_SECONDS, CommandResult, SandboxCommand
from .event_poller import EventPoller
from .messages import Endpoint, Message, MessageChannel, number, text
from .student_process import KernelTemplate, StudentProcess, start_kernel

_SPACE: Final = 1 << 20
_OPENING_BYTES: Final = 1 << 30


class SandboxSupervisor:
    """Of one cage, from its first order to the last."""

    def __init__(self, outside: MessageChannel, start: KernelTemplate, limits: Message) -> None:
        self._outside = outside
        self._limits = limits
        self._left = number(limits, "seconds")
        self._settled = False
        self._marks: dict[str, StudentProcess] = {}
        self._ear = EventPoller()
        self._ear.listen(outside)
        self._kernel: StudentProcess | None = start_kernel(start, self._message_bytes())
        self._ear.listen(self._kernel.channel, self._kernel.life)
        for name, pipe in self._kernel.pipes.items():
            self._ear.listen_to_pipe(name, pipe)
        self._base = processes.memory(self._kernel.pid)
        self._killed = processes.killed_for_memory()

    def _message_bytes(self) -> int:
        wanted = max(number(self._limits, "output_bytes"), number(self._limits, "answer_bytes"))
        return int(wanted) + _SPACE

    def obey(self) -> NoReturn:
        orders: dict[str, Callable[[Message], CommandResult]] = {
            "run": self._run,
            "test": self._test,
            "ask": self._ask,
        }
        self._outside.send({"ready": True})
        while True:
            order = self._hear_outside()
            self._outside.send(orders[text(order, "do")](order).message())

    def _hear_outside(self) -> Message:
        """What comes from others between two orders is nobody's output."""
        while True:
            heard = self._ear.next(None)
            if heard.channel is self._outside:
                if heard.message is None:
                    os._exit(0)
                return heard.message
            if heard.channel is not None and heard.message is None:
                self._end(heard.channel)

    def _run(self, order: Message) -> CommandResult:
        if order.get("mark") and self._kernel is not None:
            self._mark(self._kernel, text(order, "cell"))
        if self._kernel is None or self._settled:
            return CommandResult(status="not run")
        source: Message = {"do": "run", "source": text(order, "source")}
        result = self._execute(self._kernel, source, min(number(order, "seconds"), self._left))
        self._left -= result.seconds
        if self._left <= 0 and self._kernel is not None:
            self._end(self._kernel.channel)
            result.cause = "time"
        return result

    def _mark(self, kernel: StudentProcess, mark: str) -> None:
        """A snapshot that cannot be made is missing later; the cell runs all the same."""
        while kernel.arrived(0) is not None:
            """Whoever came uninvited is sent away."""
        made = self._execute(kernel, {"do": "mark", "mark": mark}, GRACE_SECONDS)
        place = kernel.arrived(self._message_bytes()) if made.status == "ok" else None
        if place is not None:
            self._marks[mark] = place
            self._ear.listen(place.channel, place.life)

    def _test(self, order: Message) -> CommandResult:
        """Whatever the test set going in the student's code ends with it."""
        asked: Message = {
            "do": "test",
            "source": text(order, "source"),
            "asks": bool(order.get("asks")),
        }
        result = self._in_snapshot(order, asked)
        if (place := self._marks.get(text(order, "mark"))) is not None:
            self._end(place.channel)
        self._settle()
        return result

    def _ask(self, order: Message) -> CommandResult:
        return self._in_snapshot(order, {"do": "ask", "question": order.get("question")})

    def _in_snapshot(self, order: Message, asked: Message) -> CommandResult:
        if not self._settled:
            self._settle()
        place = self._marks.get(text(order, "mark"))
        if place is None:
            return CommandResult(status="not run")
        return self._execute(place, asked, number(order, "seconds"))

    def _settle(self) -> None:
        """From here on nothing of the student runs but the snapshot that is asked."""
        self._settled = True
        if self._kernel is not None:
            self._end(self._kernel.channel)
        processes.end_all_but({place.pid for place in self._marks.values()})
        self._ear.drain()

    def _execute(self, place: StudentProcess, order: Message, seconds: float) -> CommandResult:
        cell = CellOutput(int(number(self._limits, "output_bytes")))
        errand = SandboxCommand(self._ear, self._outside, place, cell, lambda: self._full(place))
        result = errand.run(order, seconds)
        if result.fatal:
            self._end(place.channel)
            if processes.killed_for_memory() > self._killed:
                result.cause = "memory"
        return result

    def _full(self, busy: StudentProcess) -> bool:
        """Where a cgroup holds the memory nobody need look."""
        if not self._limits.get("watch"):
            return False
        paused = {place.pid for place in self._marks.values() if place is not busy}
        return processes.too_much(self._base, number(self._limits, "memory_bytes"), paused)

    def _end(self, channel: MessageChannel) -> None:
        """Of the kernel or a snapshot, and what is known of it."""
        marks = {name: place for name, place in self._marks.items() if place.channel is channel}
        for place in (self._kernel, *marks.values()):
            if place is not None and place.channel is channel:
                self._ear.forget(channel)
                place.end()
        for name in marks:
            del self._marks[name]
        if self._kernel is not None and self._kernel.channel is channel:
            self._kernel = None


def serve(end: Endpoint, start: KernelTemplate, furnish: Callable[[int], None] | None) -> NoReturn:
    """Open the cage as the first message says, fill its folder, and obey."""
    outside = MessageChannel(end, _OPENING_BYTES)
    opening = outside.receive()
    if opening is None:
        os._exit(0)
    if furnish is not None:
        furnish(int(number(opening, "disk_bytes")))
    while (file := outside.receive()) is not None and "name" in file:
        path = Path(isolation.HOME, text(file, "name"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(text(file, "content")))
    if file is None:
        os._exit(0)
    os.chdir(isolation.HOME)
    SandboxSupervisor(outside, start.within(opening), opening).obey()
