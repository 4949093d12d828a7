"""A course's gradebook as its grader writes it, kept in this process or in another one.

Where teachers' sessions are containers they may put anything into the folder of the gradebook,
and SQLite and nbgrader follow it with the rights of whoever runs them. So there a *bookkeeper*
(``bookkeeper``), which sees nothing but that folder, runs them, and does what it is told:

    to it       8 bytes, the length of what follows; (name of a method, arguments), pickled
    from it     one line of JSON for each: ``{}``, or what went wrong

What it says is taken for a sentence at most: it has read what teachers wrote.
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

CALLS: Final = ("save_release", "record")
LENGTH_BYTES: Final = 8
_PATIENCE: Final = 120.0
_LONGEST_LINE: Final = 1 << 16
_LONGEST_SENTENCE: Final = 500
_ERRORS: Final[Mapping[str, type[CarrelError]]] = {
    each.code: each for each in (Conflict, InvalidInput, NotFound)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GradebookSettings:
    """What a gradebook is opened from.

    Attributes:
        folder: of the course, in nbgrader's layout.
        installation, docker: of the engine of containers.
    """

    folder: Path
    course: str
    installation: str = ""
    docker: DockerOptions | None = None


class GradebookWriter(Protocol):
    """``gradebook.CourseBook``, as far as a grader uses it. Every call raises CarrelError."""

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

    def close(self) -> None: ...


OpenBook = Callable[[GradebookSettings], GradebookWriter]
"""Of an engine, by its entry point. Raises CarrelError."""


class GradebookProcess:
    """``GradebookWriter`` at the other end of a line."""

    def __init__(self, line: ByteStream, course: str) -> None:
        self._line, self._course = line, course
        self._heard = b""

    def close(self) -> None:
        """Its keeper ends when it hears that nobody orders any more."""
        self._line.close()

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

    def _call(self, name: str, *given: object, **more: object) -> None:
        order = pickle.dumps((name, given, more))
        try:
            self._line.send(len(order).to_bytes(LENGTH_BYTES, "big") + order)
            said = json.loads(self._answer())
        except (OSError, ValueError) as error:
            raise self._failed(str(error)) from error
        if said:
            raise self._error(said)

    def _answer(self) -> bytes:
        """Raises OSError: it has ended, or says nothing for too long, or too much."""
        while b"\n" not in self._heard:
            more = self._line.receive(_PATIENCE)
            if not more:
                raise ConnectionError("its keeper has ended")
            self._heard += more
            if len(self._heard) > _LONGEST_LINE:
                raise ConnectionError("its keeper says too much")
        line, _, self._heard = self._heard.partition(b"\n")
        return line

    def _error(self, said: object) -> CarrelError:
        if not isinstance(said, Mapping):
            return self._failed(repr(said)[:_LONGEST_SENTENCE])
        message, accepted = (
            str(said.get(key, ""))[:_LONGEST_SENTENCE] for key in ("message", "accepted")
        )
        kind = _ERRORS.get(str(said.get("code")))
        return kind(message, accepted=accepted) if kind else self._failed(message)

    def _failed(self, why: str) -> BackendFailed:
        return BackendFailed(
            f"The gradebook of {self._course} cannot be written: {why}.",
            accepted="Its teachers can look what lies in the course's folder, and grade again.",
        )
