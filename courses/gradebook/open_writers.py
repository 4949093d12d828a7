"""Keep a course's gradebook open while people grade: a writer may be a process in a container."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from ...hub.errors import BackendFailed
from .writer import GradebookProcess, GradebookWriter, ManualGrade

IDLE_SECONDS: Final = 60.0
"""How long a writer that is a process stays open after its last call."""


class OpenCourseBook(Protocol):
    """Opens the gradebook of a course. Raises CarrelError."""

    def __call__(self, *, course: str) -> GradebookWriter: ...


class OpenWriters:
    """The gradebooks that are open, one for each course; usable from any thread."""

    def __init__(self, open_book: OpenCourseBook) -> None:
        self._open_book = open_book
        self._locks: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)
        self._open: dict[str, GradebookWriter] = {}
        self._timers: dict[str, threading.Timer] = {}

    @contextmanager
    def one_at_a_time(self, course: str) -> Iterator[None]:
        """Let no other call change this gradebook meanwhile."""
        with self._locks[course]:
            yield

    def set_manual(self, course: str, grade: ManualGrade) -> None:
        """Store a person's points. Raises CarrelError."""
        with self._locks[course]:
            kept = course in self._open
            try:
                self._set(course, grade)
            except BackendFailed:
                if not kept:
                    raise
                self._set(course, grade)  # The process may have ended while it was idle.

    def _set(self, course: str, grade: ManualGrade) -> None:
        book = self._open.pop(course, None) or self._open_book(course=course)
        keep = isinstance(book, GradebookProcess)
        try:
            book.set_manual(grade)
        except BackendFailed:
            keep = False
            raise
        finally:
            if keep:
                self._keep(course, book)
            else:
                book.close()

    def _keep(self, course: str, book: GradebookWriter) -> None:
        if course in self._timers:
            self._timers[course].cancel()
        self._open[course] = book
        timer = threading.Timer(IDLE_SECONDS, self.close, (course,))
        timer.daemon = True
        self._timers[course] = timer
        timer.start()

    def close(self, course: str) -> None:
        """Close the gradebook of a course, if it is open."""
        with self._locks[course]:
            book = self._open.pop(course, None)
            if book is not None:
                book.close()
