"""Keeps one course's gradebook, as it is told on standard input: ``python -m … FOLDER COURSE``.

Runs where nothing else is than the course's folder (``bookkeeping`` has the protocol).
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


def serve(orders: BinaryIO, answers: BinaryIO, folder: Path, course: str) -> None:
    """Until nobody orders any more."""
    book: CourseGradebook | None = None
    for name, given, more in _read(orders):
        try:
            book = book or CourseGradebook(folder, course)
            getattr(book, name)(*given, **more)
        except CarrelError as error:
            said = {"code": error.code, "message": error.message, "accepted": error.accepted}
        except Exception as error:  # whatever SQLite and nbgrader make of a teacher's file
            said = {"message": str(error).splitlines()[0] if str(error) else repr(error)}
        else:
            said = {}
        answers.write(json.dumps(said).encode() + b"\n")
        answers.flush()


def _read(orders: BinaryIO) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    while head := orders.read(LENGTH_BYTES):
        order = orders.read(int.from_bytes(head, "big"))
        name, given, more = pickle.loads(order)  # noqa: S301  # nobody but the service sends it
        if name in CALLS:
            yield name, given, more


if __name__ == "__main__":
    main()
