"""Write one course's gradebook by the calls on standard input: ``python -m … FOLDER COURSE``.

Runs where only the course's folder is visible; ``writer`` describes the protocol.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from ...hub.errors import CarrelError
from .gradebook import CourseGradebook
from .writer import CALLS, LENGTH_BYTES


def main() -> None:
    folder, course = sys.argv[1:]
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nbgrader's programs print
    serve(sys.stdin.buffer, answers, Path(folder), course)


def serve(requests: BinaryIO, answers: BinaryIO, folder: Path, course: str) -> None:
    """Execute calls until the input is closed."""
    book: CourseGradebook | None = None
    for name, given, more in _read(requests):
        try:
            book = book or CourseGradebook(folder, course)
            getattr(book, name)(*given, **more)
        except CarrelError as error:
            answer = {"code": error.code, "message": error.message, "accepted": error.accepted}
        except Exception as error:  # of SQLite or nbgrader, from a teacher's file
            answer = {"message": str(error).splitlines()[0] if str(error) else repr(error)}
        else:
            answer = {}
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


def _read(requests: BinaryIO) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    while head := requests.read(LENGTH_BYTES):
        request = requests.read(int.from_bytes(head, "big"))
        name, given, more = pickle.loads(request)  # noqa: S301  # only the service sends it
        if name in CALLS:
            yield name, given, more


if __name__ == "__main__":
    main()
