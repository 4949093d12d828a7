"""A gradebook that another process writes: the same, with its errors as sentences."""

from __future__ import annotations

import io
import json
import pickle
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from socket import socket, socketpair
from typing import cast

import pytest
from nbgrader.api import Gradebook

from carrel.courses.gradebook.open_writers import OpenWriters
from carrel.courses.gradebook.reader import pages
from carrel.courses.gradebook.writer import GradebookProcess, ManualGrade
from carrel.courses.gradebook.writer_process import serve
from carrel.courses.grading.submission_grader import SubmissionResult
from carrel.courses.releases.student_version import prepare
from carrel.hub.errors import BackendFailed, Conflict, InvalidInput, NotFound

from ..grading import ps1
from ..manual_grading_samples import made_gradebook

RESULT = SubmissionResult(student="student1", seconds=1.0, notebooks=())


class SocketLine:
    def __init__(self, end: socket) -> None:
        self._end = end

    def send(self, data: bytes) -> None:
        self._end.sendall(data)

    def receive(self, seconds: float) -> bytes:
        self._end.settimeout(seconds)
        return self._end.recv(1 << 16)

    def close(self) -> None:
        self._end.close()


@contextmanager
def kept(folder: Path) -> Iterator[GradebookProcess]:
    here, there = socketpair()
    file = there.makefile("rwb")
    keeper = threading.Thread(target=serve, args=(file, file, folder, "cs101"))
    keeper.start()
    try:
        with closing(GradebookProcess(SocketLine(here), "cs101")) as book:
            yield book
    finally:
        keeper.join()
        file.close()
        there.close()


def says(answer: bytes) -> GradebookProcess:
    """A gradebook whose writer gives this answer to every call."""
    here, there = socketpair()
    there.sendall(answer)
    there.close()
    line = SocketLine(here)
    line.send = lambda _: None  # type: ignore[method-assign]
    return GradebookProcess(line, "cs101")


def test_the_process_writes_nbgraders_gradebook(tmp_path: Path) -> None:
    with kept(tmp_path) as book:
        book.save_release(prepare("ps1", ps1.source()), due=None)
        book.record("ps1", RESULT, files={"notes.txt": b"mine"})
        with pytest.raises(NotFound, match="no assignment 'ps2'"):
            book.record("ps2", RESULT)
        book.record("ps1", RESULT)
    assert (tmp_path / "submitted" / "student1" / "ps1" / "notes.txt").read_bytes() == b"mine"
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}", "cs101") as found:
        assert [each.student.id for each in found.assignment_submissions("ps1")] == ["student1"]


def test_a_failed_write_raises_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "gradebook.db").write_bytes(b"nothing of the kind" * 100)
    with kept(tmp_path) as book, pytest.raises(BackendFailed, match=r"cannot be written: .*not a"):
        book.record("ps1", RESULT)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (b"", "its writer has exited"),
        (b"x" * (1 << 17), "its writer sends too much"),
        (b"no json\n", "Expecting value"),
        (json.dumps({"message": "m" * 5000}).encode() + b"\n", r"m{500}\."),
        (json.dumps({"code": "invented", "message": "so"}).encode() + b"\n", "so"),
        (json.dumps(["surprise"]).encode() + b"\n", "surprise"),
    ],
)
def test_malformed_answers_of_the_process_are_errors(answer: bytes, sentence: str) -> None:
    with pytest.raises(BackendFailed, match=sentence):
        says(answer).record("ps1", RESULT)


def test_the_process_executes_no_other_methods(tmp_path: Path) -> None:
    order = pickle.dumps(("close", (), {}))
    answers = io.BytesIO()
    serve(io.BytesIO(len(order).to_bytes(8, "big") + order), answers, tmp_path, "cs101")
    assert answers.getvalue() == b""
    assert list(tmp_path.iterdir()) == []


def test_manual_points_replace_only_what_was_seen(tmp_path: Path) -> None:
    made_gradebook(tmp_path, ["ada"])
    first = ManualGrade(
        assignment="ps1",
        student="ada",
        notebook="ps1",
        cell="essay",
        points=2.5,
        comment="Say why.",
        seen_points=None,
        seen_comment="",
    )
    with kept(tmp_path) as book:
        book.set_manual(first)
        with pytest.raises(Conflict):
            book.set_manual(replace(first, points=1.0))
        with pytest.raises(Conflict):
            book.set_manual(replace(first, points=1.0, seen_points=2.5))
        with pytest.raises(NotFound, match="no graded cell 'other'"):
            book.set_manual(replace(first, cell="other"))
        test = replace(first, cell="test-answer", points=1.0)
        with pytest.raises(InvalidInput, match="stores no comment on test-answer"):
            book.set_manual(test)
        book.set_manual(replace(test, comment=""))
    found = pages(tmp_path, "ps1")["ada"].cells
    essay, tested = found["ps1", "essay"], found["ps1", "test-answer"]
    assert (essay.given, essay.comment, essay.waits) == (2.5, "Say why.", False)
    assert (tested.automatic, tested.given, tested.score) == (2.0, 1.0, 1.0)
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}", "cs101") as book:
        assert book.find_submission("ps1", "ada").score == 3.5


def test_a_writer_that_is_a_process_stays_open_and_is_opened_again(tmp_path: Path) -> None:
    opened: list[_Process] = []

    def open_book(*, course: str) -> GradebookProcess:
        opened.append(_Process(course))
        return opened[-1]

    writers, grade = OpenWriters(open_book), cast(ManualGrade, None)
    writers.set_manual("cs101", grade)
    writers.set_manual("cs101", grade)
    assert [each.calls for each in opened] == [2]
    opened[0].ended = True
    writers.set_manual("cs101", grade)
    assert [(each.calls, each.closed) for each in opened] == [(2, True), (1, False)]
    writers.close("cs101")
    assert opened[1].closed


class _Process(GradebookProcess):
    """A process that may have ended."""

    def __init__(self, course: str) -> None:
        self.course, self.calls = course, 0
        self.ended = self.closed = False

    def set_manual(self, grade: ManualGrade) -> None:
        if self.ended:
            raise BackendFailed("Its writer has exited.")
        self.calls += 1

    def close(self) -> None:
        self.closed = True
