"""Execute one command in a process: until it is done, late, over its limits, or gone."""

from __future__ import annotations

import os
import secrets
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from .cell_output import CellOutput, TooMuch
from .event_poller import EventPoller, PolledEvent
from .messages import Garbled, Json, Message, MessageChannel, TooLong
from .student_process import StudentProcess

GRACE_SECONDS: Final = 1.5
"""Between an interrupt and the kill."""
_TICK_SECONDS: Final = 0.2


@dataclass(slots=True, kw_only=True)
class CommandResult:
    """The result of a command, in the words of ``CellStatus`` and ``StopReason``."""

    status: str
    cause: str = "ok"
    seconds: float = 0.0
    outputs: list[Json] = field(default_factory=list)
    tampered: Json = None
    value: Json = None

    @property
    def fatal(self) -> bool:
        return self.status == "killed"

    def message(self) -> Message:
        return {
            "status": self.status,
            "cause": self.cause,
            "seconds": round(self.seconds, 4),
            "outputs": self.outputs,
            "tampered": self.tampered,
            "value": self.value,
        }


class SandboxCommand:
    """Attributes:
    full: whether the sandbox uses too much memory at this moment.
    """

    def __init__(
        self,
        poller: EventPoller,
        outside: MessageChannel,
        process: StudentProcess,
        cell: CellOutput,
        full: Callable[[], bool],
    ) -> None:
        self._poller, self._outside, self._process = poller, outside, process
        self._cell, self._full = cell, full
        self._nonce = secrets.token_hex(16)
        self._asks = False
        self._interrupted = False
        self._deadline = 0.0

    def run(self, command: Message, seconds: float) -> CommandResult:
        """Run it. If the result is ``killed``, the caller ends the process."""
        started = time.monotonic()
        self._deadline = started + seconds
        self._asks = bool(command.get("asks"))
        try:
            self._process.channel.send({**command, "nonce": self._nonce})
            result = self._wait()
        except (TooMuch, TooLong):
            result = CommandResult(status="killed", cause="output")
        except (Garbled, OSError):
            result = CommandResult(status="killed", cause="died")
        result.seconds = time.monotonic() - started
        result.outputs = self._cell.outputs
        if result.status == "error":
            result.cause = _cause_of(self._cell)
        return result

    def _wait(self) -> CommandResult:
        while True:
            event = self._poller.next(min(self._deadline, time.monotonic() + _TICK_SECONDS))
            result = self._handle(event)
            if result is None and time.monotonic() >= self._deadline:
                result = self._time_out()
            if result is not None:
                return result

    def _handle(self, event: PolledEvent) -> CommandResult | None:
        if event.pipe:
            self._print(event.pipe, event.text)
        elif event.channel is self._outside:
            if event.message is None:
                os._exit(0)
            self._process.channel.send(event.message)
        elif event.channel is self._process.channel:
            if event.message is None:
                self._drain()
                return CommandResult(status="killed", cause="died")
            return self._handle_message(event.message)
        elif self._full():
            return CommandResult(status="killed", cause="memory")
        return None

    def _handle_message(self, message: Message) -> CommandResult | None:
        """Take a message of the process; it is done only with the nonce of this command."""
        output = message.get("output")
        if isinstance(output, dict):
            self._cell.add(output)
        elif "question" in message and self._asks:
            self._outside.send({"question": message["question"]})
        elif message.get("done") == self._nonce:
            self._drain()
            done = CommandResult(
                status="ok" if message.get("status") == "ok" else "error",
                tampered=message.get("tampered"),
                value=message.get("value"),
            )
            if self._interrupted:
                done.status, done.cause = "timeout", "time"
            return done
        return None

    def _time_out(self) -> CommandResult | None:
        if self._interrupted:
            return CommandResult(status="killed", cause="time")
        self._interrupted = True
        self._deadline = time.monotonic() + GRACE_SECONDS
        self._process.signal(signal.SIGINT)
        return None

    def _drain(self) -> None:
        for name, text in self._poller.drain():
            self._print(name, text)

    def _print(self, name: str, text: str) -> None:
        self._cell.add({"output_type": "stream", "name": name, "text": text})


def _cause_of(cell: CellOutput) -> str:
    """The limit that an exception of the cell names. A hint: the student's code can raise it."""
    for name, text in cell.errors():
        if name == "MemoryError" or name.endswith("ArrayMemoryError"):
            return "memory"
        if "[Errno 28]" in text or "[Errno 27]" in text:
            return "disk"
        if "[Errno 11]" in text or "can't start new thread" in text:
            return "processes"
    return "ok"
