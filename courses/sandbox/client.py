"""Send commands to the supervisor in a sandbox, and check the plain data that comes back.

The same for every engine: each has its own ``ByteStream`` and ``SandboxKeeper``.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import PurePosixPath
from typing import Final, Protocol, cast

from ...hub.errors import BackendFailed, InvalidInput, TooLarge
from ...hub.records.json_value import Json
from .guest.messages import Garbled, Message, MessageBuffer, encode, number, text
from .interface import (
    Answerer,
    CellRun,
    CellStatus,
    CellStep,
    SandboxEnd,
    SandboxLimits,
    StopReason,
    TestAnswer,
)
from .messages import sentence, worst

_OPENING_SECONDS: Final = 30.0
_PATIENCE_SECONDS: Final = 10.0
"""Added to the time limit that the supervisor enforces."""
_ESCAPES: Final = 6
"""Bytes that JSON may need for one character."""
_SPACE: Final = 4 << 20
_FAR_TOO_LONG: Final = 1e9


class ByteStream(Protocol):
    """Bytes to and from the sandbox supervisor."""

    def send(self, data: bytes) -> None:
        """Raises OSError where the other end is closed."""
        ...

    def receive(self, seconds: float) -> bytes:
        """Empty at the end. Raises TimeoutError, or OSError."""
        ...

    def close(self) -> None: ...


class SandboxKeeper(Protocol):
    """The engine's handle on the processes of a sandbox."""

    def out_of_memory(self) -> bool:
        """Whether the kernel killed a process in it for memory."""
        ...

    def most_memory(self) -> int | None: ...

    def end(self) -> None:
        """Kill all its processes. Safe to repeat."""
        ...


class SandboxClient:
    """A sandbox as the service uses it. The supervisor at the other end has been started."""

    def __init__(
        self,
        stream: ByteStream,
        keeper: SandboxKeeper,
        limits: SandboxLimits,
        files: Mapping[str, bytes],
        *,
        watch: bool,
    ) -> None:
        self._stream, self._keeper, self._limits = stream, keeper, limits
        self._inbox = MessageBuffer(
            _ESCAPES * max(limits.output_bytes, limits.answer_bytes) + _SPACE,
        )
        self._started = time.monotonic()
        self._causes: list[StopReason] = []
        self._gone = False
        self._ended: SandboxEnd | None = None
        self._open(files, watch=watch)

    def _open(self, files: Mapping[str, bytes], *, watch: bool) -> None:
        try:
            self._stream.send(encode({**asdict(self._limits), "watch": watch}))
            for name, content in files.items():
                coded = base64.b64encode(content).decode()
                self._stream.send(encode({"name": name, "content": coded}))
            self._stream.send(encode({"filled": True}))
            self._next(time.monotonic() + _OPENING_SECONDS)
        except (OSError, Garbled) as error:
            self.close()
            raise BackendFailed(f"A sandbox could not be opened: {error}.") from error

    def run(self, steps: Iterable[CellStep]) -> Iterator[CellRun]:
        for step in steps:
            seconds = min(self._limits.cell_seconds, self._limits.seconds)
            order: Message = {
                "do": "run",
                "cell": step.cell_id,
                "source": step.source,
                "mark": step.mark,
                "seconds": seconds,
            }
            yield _cell_run(step.cell_id, self._send(order, seconds))

    def test(self, mark: str, source: str, answer: Answerer | None = None) -> CellRun:
        seconds = self._limits.test_seconds
        order: Message = {
            "do": "test",
            "mark": mark,
            "source": source,
            "asks": answer is not None,
            "seconds": seconds,
        }
        return _cell_run(mark, self._send(order, seconds, answer))

    def ask(self, mark: str, question: Json) -> TestAnswer:
        seconds = self._limits.test_seconds
        order: Message = {"do": "ask", "mark": mark, "question": question, "seconds": seconds}
        found = self._send(order, seconds)
        status = _status(found)
        return TestAnswer(
            status=status,
            value=found.get("value") if status is CellStatus.OK else None,
            cause=_cause(found),
        )

    def close(self) -> SandboxEnd:
        if self._ended is None:
            self._stream.close()
            memory = self._keeper.most_memory()
            self._keeper.end()
            cause = worst(self._causes)
            self._ended = SandboxEnd(
                cause=cause,
                sentence=sentence(cause, self._limits),
                seconds=time.monotonic() - self._started,
                memory_bytes=memory,
            )
        return self._ended

    def _send(self, order: Message, seconds: float, answer: Answerer | None = None) -> Message:
        """Send a command and return its result; without a valid one the sandbox is lost."""
        if self._gone:
            return {"status": CellStatus.NOT_RUN}
        try:
            self._stream.send(encode(order))
            deadline = time.monotonic() + seconds + _PATIENCE_SECONDS
            while "status" not in (found := self._next(deadline)):
                # If answering raises, the protocol is out of step and the sandbox is lost.
                self._gone = True
                given = answer(found.get("question")) if answer is not None else None
                self._gone = False
                self._stream.send(encode({"answer": given}))
        except TimeoutError:
            found = self._lost(StopReason.TIME)
        except (OSError, Garbled):
            found = self._lost(StopReason.DIED)
        if found.get("status") == CellStatus.KILLED and self._keeper.out_of_memory():
            found = {**found, "cause": StopReason.MEMORY}
        self._causes.append(_cause(found))
        return found

    def _lost(self, cause: StopReason) -> Message:
        self._gone = True
        found: Message = {"status": CellStatus.KILLED, "cause": cause}
        if self._keeper.out_of_memory():
            found = {**found, "cause": StopReason.MEMORY}
        self._keeper.end()
        return found

    def _next(self, deadline: float) -> Message:
        """Raises TimeoutError, OSError, Garbled."""
        while (found := self._inbox.take()) is None:
            data = self._stream.receive(max(0.0, deadline - time.monotonic()))
            if not data:
                raise ConnectionResetError("the supervisor closed the connection")
            self._inbox.feed(data)
        return found


def _status(found: Message) -> CellStatus:
    word = text(found, "status")
    return CellStatus(word) if word in set(CellStatus) else CellStatus.KILLED


def _cause(found: Message) -> StopReason:
    word = text(found, "cause")
    return StopReason(word) if word in set(StopReason) else StopReason.OK


def _cell_run(cell_id: str, found: Message) -> CellRun:
    """The result in a message; members of the wrong type are ignored."""
    outputs, tampered = found.get("outputs"), found.get("tampered")
    return CellRun(
        cell_id=cell_id,
        status=_status(found),
        outputs=tuple(
            cast("Mapping[str, Json]", each)
            for each in (outputs if isinstance(outputs, list) else ())
            if isinstance(each, dict)
        ),
        seconds=min(max(0.0, number(found, "seconds")), _FAR_TOO_LONG),
        cause=_cause(found),
        tampered=tuple(
            str(each)[:200] for each in (tampered if isinstance(tampered, list) else ())
        ),
    )


def checked(files: Mapping[str, bytes], limits: SandboxLimits) -> Mapping[str, bytes]:
    """The files, if a sandbox accepts their names and size. Raises InvalidInput, TooLarge."""
    for name in files:
        path = PurePosixPath(name)
        if not name or path.is_absolute() or ".." in path.parts or "\0" in name or name == ".":
            raise InvalidInput(
                f"{name[:100]!r} is not a valid file name in a submission.",
                accepted="A relative path that stays in its folder.",
            )
    size = sum(map(len, files.values()))
    if size > limits.disk_bytes:
        raise TooLarge(
            f"The files of the submission have {size} bytes.",
            accepted=f"Up to {limits.disk_bytes} bytes together.",
        )
    return files
