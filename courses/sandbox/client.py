"""A cage from outside: orders go in, bounded plain data comes out, and nothing of it is trusted.

The same for every engine; what differs is the line to the inside, and who keeps the cage.
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
"""Beyond what the inside is given itself."""
_ESCAPES: Final = 6
"""Bytes that one character may take on the line."""
_SPACE: Final = 4 << 20
_FAR_TOO_LONG: Final = 1e9


class ByteStream(Protocol):
    """Bytes to and from the warden."""

    def send(self, data: bytes) -> None:
        """Raises OSError where nobody reads (any more)."""
        ...

    def receive(self, seconds: float) -> bytes:
        """Empty at the end. Raises TimeoutError, or OSError."""
        ...

    def close(self) -> None: ...


class SandboxKeeper(Protocol):
    """What the engine holds a cage by."""

    def out_of_memory(self) -> bool:
        """Whether something in it was killed for memory."""
        ...

    def most_memory(self) -> int | None: ...

    def end(self) -> None:
        """All that runs there, whatever it does. Safe to repeat."""
        ...


class SandboxClient:
    """Made by an engine once something listens at the other end."""

    def __init__(
        self,
        line: ByteStream,
        keeper: SandboxKeeper,
        limits: SandboxLimits,
        files: Mapping[str, bytes],
        *,
        watch: bool,
    ) -> None:
        self._line, self._keeper, self._limits = line, keeper, limits
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
            self._line.send(encode({**asdict(self._limits), "watch": watch}))
            for name, content in files.items():
                coded = base64.b64encode(content).decode()
                self._line.send(encode({"name": name, "content": coded}))
            self._line.send(encode({"filled": True}))
            self._next(time.monotonic() + _OPENING_SECONDS)
        except (OSError, Garbled) as error:
            self.close()
            raise BackendFailed(f"A cage could not be opened: {error}.") from error

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
            yield _cell_run(step.cell_id, self._order(order, seconds))

    def test(self, mark: str, source: str, answer: Answerer | None = None) -> CellRun:
        seconds = self._limits.test_seconds
        order: Message = {
            "do": "test",
            "mark": mark,
            "source": source,
            "asks": answer is not None,
            "seconds": seconds,
        }
        return _cell_run(mark, self._order(order, seconds, answer))

    def ask(self, mark: str, question: Json) -> TestAnswer:
        seconds = self._limits.test_seconds
        order: Message = {"do": "ask", "mark": mark, "question": question, "seconds": seconds}
        found = self._order(order, seconds)
        status = _status(found)
        return TestAnswer(
            status=status,
            value=found.get("value") if status is CellStatus.OK else None,
            cause=_cause(found),
        )

    def close(self) -> SandboxEnd:
        if self._ended is None:
            self._line.close()
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

    def _order(self, order: Message, seconds: float, answer: Answerer | None = None) -> Message:
        """Its result; that of a cage that is no more where nothing (good) comes."""
        if self._gone:
            return {"status": CellStatus.NOT_RUN}
        try:
            self._line.send(encode(order))
            deadline = time.monotonic() + seconds + _PATIENCE_SECONDS
            while "status" not in (found := self._next(deadline)):
                # Should the answer raise, nothing here is in step any more.
                self._gone = True
                given = answer(found.get("question")) if answer is not None else None
                self._gone = False
                self._line.send(encode({"answer": given}))
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
            data = self._line.receive(max(0.0, deadline - time.monotonic()))
            if not data:
                raise ConnectionResetError("the other side is gone")
            self._inbox.feed(data)
        return found


def _status(found: Message) -> CellStatus:
    word = text(found, "status")
    return CellStatus(word) if word in set(CellStatus) else CellStatus.KILLED


def _cause(found: Message) -> StopReason:
    word = text(found, "cause")
    return StopReason(word) if word in set(StopReason) else StopReason.OK


def _cell_run(cell_id: str, found: Message) -> CellRun:
    """What is not of the expected form is left out."""
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
    """Raises InvalidInput, TooLarge."""
    for name in files:
        path = PurePosixPath(name)
        if not name or path.is_absolute() or ".." in path.parts or "\0" in name or name == ".":
            raise InvalidInput(
                f"{name[:100]!r} is no name for a file of a submission.",
                accepted="A relative path that stays in its folder.",
            )
    size = sum(map(len, files.values()))
    if size > limits.disk_bytes:
        raise TooLarge(
            f"The files of the submission have {size} bytes.",
            accepted=f"Up to {limits.disk_bytes} bytes together.",
        )
    return files
