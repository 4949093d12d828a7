"""What people wrote into a course's gradebook with nbgrader's formgrader: points and comments.

It is read without nbgrader, which is an extra and takes seconds to import, and never opened: the
file lies where teachers' programs may write. SQLite would follow a link there, and do what a
journal beside it says, with the rights of the service. A copy is looked at (``sqlite_snapshot``).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ...hub.errors import Unavailable
from ..files.course_folder import folder_of
from . import sqlite_snapshot

NAME = "gradebook.db"
_MOST_STEPS = 1000
"""Of a thousand instructions each: what takes more is no gradebook that nbgrader made."""
_LOOK_EVERY = 1000
_GRADES = """
select sa.student_id, sa.timestamp, n.name, cell.name,
       g.auto_score, g.manual_score, g.extra_credit, g.needs_manual_grade, c.manual_comment
from assignment a
join submitted_assignment sa on sa.assignment_id = a.id
join submitted_notebook sn on sn.assignment_id = sa.id
join notebook n on n.id = sn.notebook_id
join grade g on g.notebook_id = sn.id
join base_cell cell on cell.id = g.cell_id
left join (comment c join base_cell said on said.id = c.cell_id)
       on c.notebook_id = sn.id and said.name = cell.name
where a.name = ?
"""
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
        extra: points on top.
        waits: a person has to look at it.
        comment: a person's.
    """

    automatic: float | None
    given: float | None
    extra: float
    waits: bool
    comment: str

    @property
    def by_hand(self) -> bool:
        return self.given is not None or self.extra != 0

    @property
    def score(self) -> float | None:
        """As nbgrader counts it; None where nothing was given yet."""
        points = self.automatic if self.given is None else self.given
        return self.extra or None if points is None else points + self.extra


@dataclass(frozen=True, slots=True, kw_only=True)
class GradebookPage:
    """What the gradebook has of one student in one assignment.

    Attributes:
        at: when that was handed in which it is about; None where it does not say.
        cells: by notebook and cell.
    """

    at: float | None
    cells: dict[tuple[str, str], GradebookEntry] = field(default_factory=dict)

    def is_of(self, submitted_at: float) -> bool:
        """Times are whole seconds where nbgrader itself collected."""
        return self.at is not None and abs(self.at - submitted_at) < 1


def pages_of(root: Path | None, course: str, assignment: str) -> Mapping[str, GradebookPage]:
    """The gradebook pages of a course's students; empty where there is no folder of all courses.

    Raises Unavailable.
    """
    folder = folder_of(root, course)
    return {} if folder is None else pages(folder, assignment)


def pages(folder: Path, assignment: str) -> Mapping[str, GradebookPage]:
    """By student; empty before anything was graded. Raises Unavailable."""
    found: dict[str, GradebookPage] = {}
    with _opened(folder) as book:
        # Its grader makes one table after the other, and only then writes anything.
        if book is None or _TABLES - _tables(book):
            return found
        for student, at, notebook, cell, auto, given, extra, waits, comment in book.execute(
            _GRADES, (assignment,)
        ):
            page = found.setdefault(student, GradebookPage(at=_seconds(at)))
            page.cells[notebook, cell] = GradebookEntry(
                automatic=auto,
                given=given,
                extra=extra or 0.0,
                waits=bool(waits),
                comment=comment or "",
            )
    return found


def copy(folder: Path, to: Path) -> None:
    """A gradebook of one's own, as it is at this moment, for nbgrader to open.

    Raises:
        Unavailable: there is none, or one with more in it than tables.
    """
    with _opened(folder) as book:
        if book is None:
            raise Unavailable(f"There is no gradebook in {folder}.")
        if strange := book.execute(_MADE_BY_OTHERS).fetchone():
            raise _unreadable(folder, f"nbgrader makes no {strange[0][:80]}")
        to.write_bytes(book.serialize())


def _tables(book: sqlite3.Connection) -> frozenset[str]:
    return frozenset(name for (name,) in book.execute("select name from sqlite_master"))


@contextmanager
def _opened(folder: Path) -> Iterator[sqlite3.Connection | None]:
    """A copy in memory; None where there is no gradebook, or something else by its name."""
    try:
        content = sqlite_snapshot.read(folder, NAME)
        if not content:
            yield None
            return
        with closing(sqlite3.connect(":memory:")) as book:
            book.deserialize(content)
            steps = iter(range(_MOST_STEPS))
            book.set_progress_handler(lambda: next(steps, None) is None, _LOOK_EVERY)
            yield book
    except FileNotFoundError:
        yield None
    except OSError as error:
        raise _unreadable(folder, error.strerror or str(error)) from error
    except sqlite3.Error as error:
        raise _unreadable(folder, str(error)) from error


def _unreadable(folder: Path, why: str) -> Unavailable:
    return Unavailable(
        f"The gradebook of {folder.name} cannot be read: {why}.",
        accepted="Its teachers can try again, or look what lies there in the course's folder.",
    )


def _seconds(at: str | None) -> float | None:
    try:
        return None if at is None else datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
