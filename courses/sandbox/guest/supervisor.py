"""Supervise a sandbox: its first process, in which no student's code ever runs.

It executes the commands of the service: it starts the kernel, keeps its snapshots, limits the time
and output of every cell, and ends all processes of the student's code before hidden tests arrive.
As the init of its process namespace it cannot be inspected or killed by the others.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from functools import partial
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
    """Executes the commands for one sandbox, from the first to the last."""

    def __init__(self, outside: MessageChannel, template: KernelTemplate, limits: Message) -> None:
        self._outside = outside
        self._limits = limits
        self._seconds_left = number(limits, "seconds")
        self._student_code_ended = False
        self._marks: dict[str, StudentProcess] = {}
        self._poller = EventPoller()
        self._poller.watch(outside)
        self._kernel: StudentProcess | None = start_kernel(template, self._message_bytes())
        self._poller.watch(self._kernel.channel, self._kernel.life)
        for name, pipe in self._kernel.pipes.items():
            self._poller.watch_pipe(name, pipe)
        self._base = processes.memory(self._kernel.pid)
        self._killed = processes.killed_for_memory()

    def _message_bytes(self) -> int:
        wanted = max(number(self._limits, "output_bytes"), number(self._limits, "answer_bytes"))
        return int(wanted) + _SPACE

    def serve_commands(self) -> NoReturn:
        commands: dict[str, Callable[[Message], CommandResult]] = {
            "run": self._run,
            "test": self._test,
            "ask": self._ask,
        }
        self._outside.send({"ready": True})
        while True:
            command = self._next_command()
            self._outside.send(commands[text(command, "do")](command).message())

    def _next_command(self) -> Message:
        """The next command; output of processes between two commands is dropped."""
        while True:
            event = self._poller.next(None)
            if event.channel is self._outside:
                if event.message is None:
                    os._exit(0)
                return event.message
            if event.channel is not None and event.message is None:
                self._end(event.channel)

    def _run(self, command: Message) -> CommandResult:
        if command.get("mark") and self._kernel is not None:
            self._mark(self._kernel, text(command, "cell"))
        if self._kernel is None or self._student_code_ended:
            return CommandResult(status="not run")
        source: Message = {"do": "run", "source": text(command, "source")}
        result = self._execute(
            self._kernel, source, min(number(command, "seconds"), self._seconds_left)
        )
        self._seconds_left -= result.seconds
        if self._seconds_left <= 0 and self._kernel is not None:
            self._end(self._kernel.channel)
            result.cause = "time"
        return result

    def _mark(self, kernel: StudentProcess, mark: str) -> None:
        """Take a snapshot. If that fails, the cell still runs and its test finds no snapshot."""
        while kernel.arrived(0) is not None:
            """Drop snapshots that were not requested."""
        made = self._execute(kernel, {"do": "mark", "mark": mark}, GRACE_SECONDS)
        process = kernel.arrived(self._message_bytes()) if made.status == "ok" else None
        if process is not None:
            self._marks[mark] = process
            self._poller.watch(process.channel, process.life)

    def _test(self, command: Message) -> CommandResult:
        """Run a test, then end its snapshot and every process that it started."""
        message: Message = {
            "do": "test",
            "source": text(command, "source"),
            "asks": bool(command.get("asks")),
        }
        result = self._in_snapshot(command, message)
        if (process := self._marks.get(text(command, "mark"))) is not None:
            self._end(process.channel)
        self._end_student_code()
        return result

    def _ask(self, command: Message) -> CommandResult:
        return self._in_snapshot(command, {"do": "ask", "question": command.get("question")})

    def _in_snapshot(self, command: Message, message: Message) -> CommandResult:
        if not self._student_code_ended:
            self._end_student_code()
        process = self._marks.get(text(command, "mark"))
        if process is None:
            return CommandResult(status="not run")
        return self._execute(process, message, number(command, "seconds"))

    def _end_student_code(self) -> None:
        """End all processes of the student's code but the snapshots."""
        self._student_code_ended = True
        if self._kernel is not None:
            self._end(self._kernel.channel)
        processes.end_all_but({process.pid for process in self._marks.values()})
        self._poller.drain()

    def _execute(self, process: StudentProcess, command: Message, seconds: float) -> CommandResult:
        cell = CellOutput(int(number(self._limits, "output_bytes")))
        full = partial(self._full, process)
        running = SandboxCommand(self._poller, self._outside, process, cell, full)
        result = running.run(command, seconds)
        if result.fatal:
            self._end(process.channel)
            if processes.killed_for_memory() > self._killed:
                result.cause = "memory"
        return result

    def _full(self, busy: StudentProcess) -> bool:
        """Whether memory is over its limit, where no cgroup enforces it."""
        if not self._limits.get("watch"):
            return False
        paused = {process.pid for process in self._marks.values() if process is not busy}
        return processes.over_memory(self._base, number(self._limits, "memory_bytes"), paused)

    def _end(self, channel: MessageChannel) -> None:
        """End the kernel or snapshot of a channel, and forget it."""
        marks = {name: each for name, each in self._marks.items() if each.channel is channel}
        for process in (self._kernel, *marks.values()):
            if process is not None and process.channel is channel:
                self._poller.forget(channel)
                process.end()
        for name in marks:
            del self._marks[name]
        if self._kernel is not None and self._kernel.channel is channel:
            self._kernel = None


def serve(
    end: Endpoint, template: KernelTemplate, set_up_files: Callable[[int], None] | None
) -> NoReturn:
    """Set up the sandbox by the first messages (limits, files), then execute commands."""
    outside = MessageChannel(end, _OPENING_BYTES)
    opening = outside.receive()
    if opening is None:
        os._exit(0)
    if set_up_files is not None:
        set_up_files(int(number(opening, "disk_bytes")))
    while (file := outside.receive()) is not None and "name" in file:
        path = Path(isolation.HOME, text(file, "name"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(text(file, "content")))
    if file is None:
        os._exit(0)
    os.chdir(isolation.HOME)
    SandboxSupervisor(outside, template.within(opening), opening).serve_commands()
