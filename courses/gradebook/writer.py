"""Write a course's gradebook, in this process or in a process of its own.

Where sessions are containers, teachers can put anything into the gradebook's folder, and SQLite
and nbgrader would follow it with the rights of their process. So a *gradebook writer*
(``writer_process``), which sees only that folder, runs them and executes calls:

    request     8 bytes, the length of the rest; (name of a method, arguments), pickled
    answer      one line of JSON: ``{}``, or an error

Its answers are used as error messages only: it has read files that teachers wrote.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from ...hub.errors import BackendFailed, CarrelError, Conflict, InvalidInput, NotFound
from ...hub.interfaces.backend_settings import DockerOptions

if TYPE_CHECKING:  # They import nbgrader, which takes seconds and is an extra.
    from ..grading.submission_grader import SubmissionResult
    from ..releases.student_version import Prepared
    from ..sandbox.client import ByteStream

CALLS: Final = ("save_release", "record", "set_manual")
LENGTH_BYTES: Final = 8
_PATIENCE: Final = 120.0
_MAX_LINE: Final = 1 << 16
_MAX_MESSAGE: Final = 500
_ERRORS: Final[Mapping[str, type[CarrelError]]] = {
    each.code: each for each in (Conflict, InvalidInput, NotFound)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GradebookSettings:
    """Settings of a gradebook.

    Attributes:
        folder: the course's, in nbgrader's layout.
        installation, docker: for the container engine.
    """

    folder: Path
    course: str
    installation: str = ""
    docker: DockerOptions | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ManualGrade:
    """Points and a comment of a person on one cell.

    Attributes:
        points: None for none: those of the test count, if there is one.
        seen_points, seen_comment: what is replaced.
    """

    assignment: str
    student: str
    notebook: str
    cell: str
    points: float | None
    comment: str
    seen_points: float | None
    seen_comment: str


class GradebookWriter(Protocol):
    """What the grading worker and manual grading call of a gradebook.

    Every call raises CarrelError.
    """

    def save_release(self, prepared: Prepared, *, due: datetime | None) -> None: ...

    def record(
        self,
        assignment: str,
        result: SubmissionResult,
        *,
        files: Mapping[str, bytes] | None = None,
        submitted_at: datetime | None = None,
        late_penalty: float = 0.0,
    ) -> None: ...

    def set_manual(self, grade: ManualGrade) -> None: ...

    def close(self) -> None: ...


OpenBook = Callable[[GradebookSettings], GradebookWriter]
"""Opens a gradebook; an engine's entry point. Raises CarrelError."""


class GradebookProcess:
    """A ``GradebookWriter`` in another process."""

    def __init__(self, stream: ByteStream, course: str) -> None:
        self._stream, self._course = stream, course
        self._buffer = b""

    def close(self) -> None:
        """The process exits when its input is closed."""
        self._stream.close()

    def save_release(self, prepared: Prepared, *, due: datetime | None) -> None:
        self._call("save_release", prepared, due=due)

    def record(
        self,
        assignment: str,
        result: SubmissionResult,
        *,
        files: Mapping[str, bytes] | None = None,
        submitted_at: datetime | None = None,
        late_penalty: float = 0.0,
    ) -> None:
        more = {"files": files, "submitted_at": submitted_at, "late_penalty": late_penalty}
        self._call("record", assignment, result, **more)

    def set_manual(self, grade: ManualGrade) -> None:
        self._call("set_manual", grade)

    def _call(self, name: str, *given: object, **more: object) -> None:
        request = pickle.dumps((name, given, more))
        try:
            self._stream.send(len(request).to_bytes(LENGTH_BYTES, "big") + request)
            answer = json.loads(self._answer())
        except (OSError, ValueError) as error:
            raise self._failed(str(error)) from error
        if answer:
            raise self._error(answer)

    def _answer(self) -> bytes:
        """A line of the process. Raises OSError if it exited, is silent or sends too much."""
        while b"\n" not in self._buffer:
            more = self._stream.receive(_PATIENCE)
            if not more:
                raise ConnectionError("its writer has exited")
            self._buffer += more
            if len(self._buffer) > _MAX_LINE:
                raise ConnectionError("its writer sends too much")
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _error(self, answer: object) -> CarrelError:
        if not isinstance(answer, Mapping):
            return self._failed(repr(answer)[:_MAX_MESSAGE])
        message, accepted = (
            str(answer.get(key, ""))[:_MAX_MESSAGE] for key in ("message", "accepted")
        )
        kind = _ERRORS.get(str(answer.get("code")))
        return kind(message, accepted=accepted) if kind else self._failed(message)

    def _failed(self, why: str) -> BackendFailed:
        return BackendFailed(
            f"The gradebook of {self._course} cannot be written: {why}.",
            accepted="Check the files in the course's folder, and grade again.",
        )
