"""Read a roster (CSV), and compute the changes to the class before they are applied.

A roster lists the whole class: members who are not on it leave. Leaving deletes nothing; a member
who returns finds all earlier work.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...hub.accounts.usernames import is_valid, normalise
from ...hub.errors import InvalidInput, TooLarge
from ...hub.files.csv_table import lines_of, without_empty_end
from ...hub.schemas.names import described, hidden_in
from ..model.records import CourseRole, Member

MAX_ROWS = 5_000
MAX_CHARACTERS = 1_000_000
_LONGEST = 200
_SHOWN_MISTAKES = 5
_COLUMNS = ("student", "name", "section", "role")
_ACCEPTED = (
    "A table (CSV) whose first line names its columns: 'student' (the name to sign in with; "
    "without it, 'name') and, as far as wanted, 'name', 'section' and 'role' (student, grader or "
    "teacher)."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RosterRow:
    """One row of a roster."""

    person: str
    full_name: str = ""
    section: str = ""
    role: CourseRole = CourseRole.STUDENT


@dataclass(frozen=True, slots=True, kw_only=True)
class RosterChange:
    """The changes of a roster, by name; teachers are compared by name alone.

    Attributes:
        added: new members.
        noted: members of the group who were on no roster before.
        returned: former members who return.
        changed: members with another section, role or full name; before and after.
        leaving: members who are not on the roster.
        new_teachers, former_teachers: of the course.
    """

    course: str
    added: tuple[Member, ...] = ()
    noted: tuple[Member, ...] = ()
    returned: tuple[Member, ...] = ()
    changed: tuple[tuple[Member, Member], ...] = ()
    leaving: tuple[Member, ...] = ()
    new_teachers: tuple[str, ...] = ()
    former_teachers: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        parts = (self.added, self.noted, self.returned, self.changed, self.leaving)
        return not any((*parts, self.new_teachers, self.former_teachers))

    @property
    def staying(self) -> tuple[Member, ...]:
        """All members whose entry is written."""
        return (*self.added, *self.noted, *self.returned, *(after for _, after in self.changed))

    def sentences(self) -> Iterator[str]:
        """The changes in sentences, the important ones (members who leave) first."""
        for member in self.leaving:
            yield f"{_full_name(member)} leaves; the submissions are kept."
        for name in self.former_teachers:
            yield f"{name} is no longer a teacher of {self.course}."
        for name in self.new_teachers:
            yield f"{name} becomes a teacher."
        for member in self.added:
            yield f"{_full_name(member)} is new{_role_and_section(member)}."
        for member in self.noted:
            yield f"{_full_name(member)} was in the group already{_role_and_section(member)}."
        for member in self.returned:
            yield f"{_full_name(member)} returns{_role_and_section(member)}."
        for before, after in self.changed:
            yield f"{_full_name(before)}: {', '.join(_differences(before, after))}."


# -- reading ----------------------------------------------------------------------------------


def read_roster(text: str) -> tuple[RosterRow, ...]:
    """The rows of a roster, in order.

    Raises:
        InvalidInput: of the heading or of lines, which are named.
        TooLarge: it is larger than a roster of one class.
    """
    if len(text) > MAX_CHARACTERS:
        raise TooLarge("The roster is too large.", accepted=_ACCEPTED, field="students")
    try:
        lines = lines_of(text, title="roster")
    except InvalidInput as error:
        raise _refused(error.message) from error
    if len(lines) > MAX_ROWS:
        raise TooLarge(f"The roster has more than {MAX_ROWS:,} people.", field="students")
    return _rows(lines)


def _rows(lines: Sequence[tuple[int, list[str]]]) -> tuple[RosterRow, ...]:
    columns = _columns(lines[0][1])
    found: dict[str, RosterRow] = {}
    mistakes: list[str] = []
    for number, cells in lines[1:]:
        try:
            row = _row(columns, cells, found)
            found[row.person] = row
        except InvalidInput as error:
            mistakes.append(f"line {number}: {error.message}")
    if mistakes:
        more = len(mistakes) - _SHOWN_MISTAKES
        shown = "; ".join(mistakes[:_SHOWN_MISTAKES]) + (f"; and {more} more" if more > 0 else "")
        raise _refused(f"The roster has mistakes: {shown}.")
    return tuple(found.values())


def _columns(cells: Sequence[str]) -> tuple[str, ...]:
    columns = tuple(cell.strip().lower() for cell in without_empty_end(cells))
    if "student" not in columns:  # then "name" is what people sign in with
        columns = tuple("student" if name == "name" else name for name in columns)
    if "student" not in columns:
        raise _refused("The first line of the roster names no column 'student'.")
    if unknown := [name for name in columns if name not in _COLUMNS]:
        raise _refused(f"The roster has a column {unknown[0][:40]!r}, which is not known.")
    if len(set(columns)) < len(columns):
        raise _refused("The roster has a column twice.")
    return columns


def _row(columns: Sequence[str], cells: Sequence[str], others: Collection[str]) -> RosterRow:
    cells = without_empty_end(cells)
    if len(cells) > len(columns):
        raise InvalidInput(f"it has {len(cells)} cells, and there are {len(columns)} columns")
    given = {name: cell.strip() for name, cell in zip(columns, cells, strict=False)}
    person = normalise(given.get("student", ""))
    if not is_valid(person):
        raise InvalidInput(f"{given.get('student', '')[:40]!r} is not a valid user name")
    if person in others:
        raise InvalidInput(f"{person} is there twice")
    if any(len(value) > _LONGEST for value in given.values()):
        raise InvalidInput(f"a cell has more than {_LONGEST} characters")
    if hidden := next(filter(None, map(hidden_in, given.values())), ""):
        raise InvalidInput(f"a cell holds the hidden character {described(hidden)}")
    role = given.get("role", "").lower() or CourseRole.STUDENT
    if role not in tuple(CourseRole):
        raise InvalidInput(f"{role[:40]!r} is not a role: student, grader or teacher")
    return RosterRow(
        person=person,
        full_name=given.get("name", ""),
        section=given.get("section", ""),
        role=CourseRole(role),
    )


def _refused(sentence: str) -> InvalidInput:
    return InvalidInput(sentence, accepted=_ACCEPTED, field="students")


# -- comparing --------------------------------------------------------------------------------


def roster_change(
    course: str,
    rows: Iterable[RosterRow],
    members: Iterable[Member],
    *,
    unlisted: Iterable[Member] = (),
    teachers: Iterable[str] = (),
) -> RosterChange:
    """Compute the changes that make the class what the roster says.

    Teachers change only if the roster names one: most rosters list students alone.

    Args:
        members: the roster so far, with those who have left.
        unlisted: members of the group who were on no roster.
    """
    known = {member.person: member for member in members}
    wanted = {
        row.person: Member(
            course=course,
            person=row.person,
            role=row.role,
            full_name=row.full_name,
            section=row.section,
        )
        for row in sorted(rows, key=lambda row: row.person)
    }
    named = {name for name, member in wanted.items() if member.role is CourseRole.TEACHER}
    before = set(teachers)
    stay = {name: member for name, member in wanted.items() if name not in named}
    here = {name: each for name, each in known.items() if each.left_at is None}
    inside = {each.person: each for each in unlisted}
    return RosterChange(
        course=course,
        added=tuple(each for name, each in stay.items() if name not in {*known, *inside}),
        noted=tuple(each for name, each in stay.items() if name in inside),
        returned=tuple(each for name, each in stay.items() if name in known and name not in here),
        changed=tuple(
            (here[name], each) for name, each in stay.items() if name in here and here[name] != each
        ),
        leaving=tuple(each for name, each in sorted((here | inside).items()) if name not in stay),
        new_teachers=tuple(sorted(named - before)),
        former_teachers=tuple(sorted(before - named)) if named else (),
    )


def _full_name(member: Member) -> str:
    return f"{member.person} ({member.full_name})" if member.full_name else member.person


def _role_and_section(member: Member) -> str:
    role = "" if member.role is CourseRole.STUDENT else f", as {member.role}"
    return role + (f", section {member.section}" if member.section else "")


def _differences(before: Member, after: Member) -> Iterator[str]:
    if before.role is not after.role:
        yield f"{before.role} → {after.role}"
    if before.section != after.section:
        yield f"section {before.section or 'none'} → {after.section or 'none'}"
    if before.full_name != after.full_name:
        yield f"name {before.full_name or 'none'} → {after.full_name or 'none'}"
