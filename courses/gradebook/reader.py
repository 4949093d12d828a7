"""Read the points and comments that people gave in nbgrader's formgrader.

The gradebook is read without nbgrader, which is an extra and slow to import, and from a copy
(``sqlite_snapshot``): teachers' programs can write its folder, and SQLite would follow links and
journals there with the rights of the service.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ...hub.errors import Unavailable
from ..files.course_folder import folder_of
from . import sqlite_snapshot

NAME = "gradebook.db"
_MOST_STEPS = 10_000
"""Of a thousand instructions each, for one query. A class of 300 with 20 cells needs 330."""
_LOOK_EVERY = 1000
GRADES_QUERY = """
select sa.student_id, sa.timestamp, n.name, cell.name,
       g.auto_score, g.manual_score, g.extra_credit, g.needs_manual_grade, c.manual_comment,
       c.id is not null
from assignment a
cross join notebook n on n.assignment_id = a.id
cross join base_cell cell on cell.notebook_id = n.id
cross join grade g on g.cell_id = cell.id
cross join submitted_notebook sn on sn.id = g.notebook_id
cross join submitted_assignment sa on sa.id = sn.assignment_id
left join comment c on c.id = (
    select own.id from base_cell said
    cross join comment own on own.cell_id = said.id and own.notebook_id = sn.id
    where said.name = cell.name and said.notebook_id = n.id
)
where a.name = ?
"""
"""A cross join keeps this order, which reads nothing of other assignments."""
_MADE_BY_OTHERS = """
select type || ' ' || name from sqlite_master
where type in ('view', 'trigger') and name <> 'carrel_late_follows'
"""
_TABLES = {
    *("assignment", "submitted_assignment", "submitted_notebook", "notebook"),
    *("base_cell", "grade", "comment"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GradebookEntry:
    """One cell of one student.

    Attributes:
        automatic, given: points of the tests and of a person; None for none.
        extra: extra credit.
        waits: a person has to review it.
        comment: of a person.
        takes_comment: nbgrader stores a comment on this cell; it stores none on a test.
    """

    automatic: float | None
    given: float | None
    extra: float
    waits: bool
    comment: str
    takes_comment: bool = False

    @property
    def by_hand(self) -> bool:
        return self.given is not None or self.extra != 0

    @property
    def score(self) -> float | None:
        """The score as nbgrader computes it; None before there is one."""
        points = self.automatic if self.given is None else self.given
        return self.extra or None if points is None else points + self.extra


@dataclass(frozen=True, slots=True, kw_only=True)
class GradebookPage:
    """The gradebook's entries for one student and assignment.

    Attributes:
        at: the time of the graded submission; None for unknown.
        cells: by notebook and cell.
    """

    at: float | None
    cells: dict[tuple[str, str], GradebookEntry] = field(default_factory=dict)

    def is_of(self, submitted_at: float) -> bool:
        """Whether it grades the submission of this time. nbgrader stores whole seconds."""
        return self.at is not None and abs(self.at - submitted_at) < 1


def pages_of(root: Path | None, course: str, assignment: str) -> Mapping[str, GradebookPage]:
    """The gradebook pages of a course's students; empty where there is no folder of all courses.

    Raises Unavailable.
    """
    return all_pages_of(root, course, [assignment])[assignment]


def all_pages_of(
    root: Path | None, course: str, assignments: Collection[str]
) -> Mapping[str, Mapping[str, GradebookPage]]:
    """The same of several assignments, from one copy of the gradebook. Raises Unavailable."""
    folder = folder_of(root, course)
    if folder is None:
        return {name: {} for name in assignments}
    return pages_by_assignment(folder, assignments)


def pages(folder: Path, assignment: str) -> Mapping[str, GradebookPage]:
    """The pages by student; empty before the first grading. Raises Unavailable."""
    return pages_by_assignment(folder, [assignment])[assignment]


def pages_by_assignment(
    folder: Path, assignments: Iterable[str]
) -> Mapping[str, Mapping[str, GradebookPage]]:
    """The pages by assignment and student, from one copy of the gradebook. Raises Unavailable."""
    with _opened(folder) as book:
        # The tables are created one after the other, before any row is written.
        ready = book is not None and not _TABLES - _tables(book)
        return {name: _pages(book, name) if book and ready else {} for name in assignments}


def _pages(book: sqlite3.Connection, assignment: str) -> Mapping[str, GradebookPage]:
    found: dict[str, GradebookPage] = {}
    _limit_next_query(book)
    for row in book.execute(GRADES_QUERY, (assignment,)):
        student, at, notebook, cell, auto, given, extra, waits, comment, takes_comment = row
        if student not in found:
            found[student] = GradebookPage(at=_seconds(at))
        found[student].cells[notebook, cell] = GradebookEntry(
            automatic=auto,
            given=given,
            extra=extra or 0.0,
            waits=bool(waits),
            comment=comment or "",
            takes_comment=bool(takes_comment),
        )
    return found


def copy(folder: Path, to: Path) -> None:
    """Copy the gradebook as it is now, for nbgrader to open.

    Raises:
        Unavailable: there is none, or it has views or triggers that nbgrader does not create.
    """
    with _opened(folder) as book:
        if book is None:
            raise Unavailable(f"There is no gradebook in {folder}.")
        if strange := book.execute(_MADE_BY_OTHERS).fetchone():
            raise _unreadable(folder, f"nbgrader does not create the {strange[0][:80]}")
        to.write_bytes(book.serialize())


def _tables(book: sqlite3.Connection) -> frozenset[str]:
    return frozenset(name for (name,) in book.execute("select name from sqlite_master"))


@contextmanager
def _opened(folder: Path) -> Iterator[sqlite3.Connection | None]:
    """Open a copy in memory; None where there is no gradebook."""
    try:
        content = sqlite_snapshot.read(folder, NAME)
        if not content:
            yield None
            return
        with closing(sqlite3.connect(":memory:")) as book:
            book.deserialize(content)
            _limit_next_query(book)
            yield book
    except FileNotFoundError:
        yield None
    except OSError as error:
        raise _unreadable(folder, error.strerror or str(error)) from error
    except sqlite3.Error as error:
        raise _unreadable(folder, str(error)) from error


def _limit_next_query(book: sqlite3.Connection) -> None:
    steps = iter(range(_MOST_STEPS))
    book.set_progress_handler(lambda: next(steps, None) is None, _LOOK_EVERY)


def _unreadable(folder: Path, why: str) -> Unavailable:
    return Unavailable(
        f"The gradebook of {folder.name} cannot be read: {why}.",
        accepted="Try again, or check the files in the course's folder.",
    )


def _seconds(at: str | None) -> float | None:
    try:
        return None if at is None else datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
