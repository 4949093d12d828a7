"""One order carried out in one place: until it is done, late, too loud, or its process is gone."""

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
    """How an order went; the words are those of the port."""

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
    full: whether the cage uses too much memory at this moment.
    """

    def __init__(
        self,
        ear: EventPoller,
        outside: MessageChannel,
        place: StudentProcess,
        cell: CellOutput,
        full: Callable[[], bool],
    ) -> None:
        self._ear, self._outside, self._place = ear, outside, place
        self._cell, self._full = cell, full
        self._nonce = secrets.token_hex(16)
        self._asks = False
        self._interrupted = False
        self._deadline = 0.0

    def run(self, order: Message, seconds: float) -> CommandResult:
        """A killed one still has to be ended by whoever sent it."""
        started = time.monotonic()
        self._deadline = started + seconds
        self._asks = bool(order.get("asks"))
        try:
            self._place.channel.send({**order, "nonce": self._nonce})
            result = self._follow()
        except (TooMuch, TooLong):
            result = CommandResult(status="killed", cause="output")
        except (Garbled, OSError):
            result = CommandResult(status="killed", cause="died")
        result.seconds = time.monotonic() - started
        result.outputs = self._cell.outputs
        if result.status == "error":
            result.cause = _cause_of(self._cell)
        return result

    def _follow(self) -> CommandResult:
        while True:
            heard = self._ear.next(min(self._deadline, time.monotonic() + _TICK_SECONDS))
            result = self._understand(heard)
            if result is None and time.monotonic() >= self._deadline:
                result = self._late()
            if result is not None:
                return result

    def _understand(self, heard: PolledEvent) -> CommandResult | None:
        if heard.pipe:
            self._print(heard.pipe, heard.text)
        elif heard.channel is self._outside:
            if heard.message is None:
                os._exit(0)
            self._place.channel.send(heard.message)
        elif heard.channel is self._place.channel:
            if heard.message is None:
                self._drain()
                return CommandResult(status="killed", cause="died")
            return self._take(heard.message)
        elif self._full():
            return CommandResult(status="killed", cause="memory")
        return None

    def _take(self, message: Message) -> CommandResult | None:
        """Only who was given this order's nonce can say that it is done."""
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

    def _late(self) -> CommandResult | None:
        if self._interrupted:
            return CommandResult(status="killed", cause="time")
        self._interrupted = True
        self._deadline = time.monotonic() + GRACE_SECONDS
        self._place.signal(signal.SIGINT)
        return None

    def _drain(self) -> None:
        for name, words in self._ear.drain():
            self._print(name, words)

    def _print(self, name: str, words: str) -> None:
        self._cell.add({"output_type": "stream", "name": name, "text": words})


def _cause_of(cell: CellOutput) -> str:
    """What an exception says of a limit; only a word for who reads it."""
    for name, words in cell.errors():
        if name == "MemoryError" or name.endswith("ArrayMemoryError"):
            return "memory"
        if "[Errno 28]" in words or "[Errno 27]" in words:
            return "disk"
        if "[Errno 11]" in words or "can't start new thread" in words:
            return "processes"
    return "ok"
