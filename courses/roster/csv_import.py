"""A class as a table (CSV), and what it would change: shown before anything is applied.

A roster is the whole class: who is not on it leaves. Leaving deletes nothing, and whoever
comes back finds everything again.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...hub.errors import InvalidInput, TooLarge
from ...hub.schemas import NAME
from ..model.records import CourseRole, Member

MAX_ROWS = 5_000
MAX_CHARACTERS = 1_000_000
_LONGEST = 200
_SHOWN_MISTAKES = 5
_DELIMITERS = ",;\t|"
_COLUMNS = ("student", "name", "section", "role")
_ACCEPTED = (
    "A table (CSV) whose first line names its columns: 'student' (the name to sign in with) and, "
    "as far as wanted, 'name', 'section' and 'role' (student, grader or teacher)."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RosterRow:
    """One person of a roster."""

    person: str
    full_name: str = ""
    section: str = ""
    role: CourseRole = CourseRole.STUDENT


@dataclass(frozen=True, slots=True, kw_only=True)
class RosterChange:
    """What a roster changes, by name; teachers are compared as names alone.

    Attributes:
        added: who is new.
        noted: who was in the group already, and no roster had said so.
        returned: who had left and comes back.
        changed: who stays with another section, role or full name; before and after.
        leaving: who is not on it any more.
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
        """Everybody whose entry is written anew."""
        return (*self.added, *self.noted, *self.returned, *(after for _, after in self.changed))

    def sentences(self) -> Iterator[str]:
        """For people, in the order in which they should look at it: who leaves comes first."""
        for member in self.leaving:
            yield f"{_called(member)} leaves; what was handed in stays."
        for name in self.former_teachers:
            yield f"{name} is no teacher of {self.course} any more."
        for name in self.new_teachers:
            yield f"{name} becomes a teacher."
        for member in self.added:
            yield f"{_called(member)} is new{_as(member)}."
        for member in self.noted:
            yield f"{_called(member)} was in the group already{_as(member)}."
        for member in self.returned:
            yield f"{_called(member)} comes back{_as(member)}."
        for before, after in self.changed:
            yield f"{_called(before)}: {', '.join(_differences(before, after))}."


# -- reading ----------------------------------------------------------------------------------


def read_roster(text: str) -> tuple[RosterRow, ...]:
    """The rows of a table, in its order.

    Raises:
        InvalidInput: the heading or some lines are wrong; names the lines.
        TooLarge: it is no roster of one class.
    """
    if len(text) > MAX_CHARACTERS:
        raise TooLarge("The roster is too large.", accepted=_ACCEPTED, field="students")
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    heading = next((line for line in text.split("\n") if line.strip()), "")
    # The heading tells: names of people and sections may hold any of them.
    delimiter = max(_DELIMITERS, key=heading.count)
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True, strict=True)
    try:
        lines = [(reader.line_num, cells) for cells in reader if any(map(str.strip, cells))]
    except csv.Error as error:
        raise _refused(f"Line {reader.line_num} of the roster cannot be read: {error}.") from error
    if not lines:
        raise _refused("The roster is empty.")
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
    columns = tuple(cell.strip().lower() for cell in cells)
    if "student" not in columns:
        raise _refused("The first line of the roster names no column 'student'.")
    if unknown := [name for name in columns if name not in _COLUMNS]:
        raise _refused(f"The roster has a column {unknown[0][:40]!r}, which is not known.")
    if len(set(columns)) < len(columns):
        raise _refused("The roster has a column twice.")
    return columns


def _row(columns: Sequence[str], cells: Sequence[str], others: Collection[str]) -> RosterRow:
    if len(cells) > len(columns):
        raise InvalidInput(f"it has {len(cells)} cells, and there are {len(columns)} columns")
    given = {name: cell.strip() for name, cell in zip(columns, cells, strict=False)}
    person = given["student"].lower()
    if not re.fullmatch(NAME, person):
        raise InvalidInput(f"{given['student'][:40]!r} is no name to sign in with")
    if person in others:
        raise InvalidInput(f"{person} is there twice")
    if any(len(value) > _LONGEST or not value.isprintable() for value in given.values()):
        raise InvalidInput("a cell is too long, or holds characters that cannot be shown")
    role = given.get("role", "").lower() or CourseRole.STUDENT
    if role not in tuple(CourseRole):
        raise InvalidInput(f"{role[:40]!r} is no role: student, grader or teacher")
    return RosterRow(
        person=person,
        full_name=given.get("name", ""),
        section=given.get("section", ""),
        role=CourseRole(role),
    )


def _refused(sentence: str) -> InvalidInput:
    return InvalidInput(sentence, accepted=_ACCEPTED, field="students")


# -- comparing --------------------------------------------------------------------------------


def planned(
    course: str,
    rows: Iterable[RosterRow],
    members: Iterable[Member],
    *,
    unlisted: Iterable[Member] = (),
    teachers: Iterable[str] = (),
) -> RosterChange:
    """What it takes to make the class what the roster says.

    Teachers change only where the roster names one: most rosters list students alone.

    Args:
        members: whom a roster has named, also those who have left.
        unlisted: who is in the group, and no roster has named.
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


def _called(member: Member) -> str:
    return f"{member.person} ({member.full_name})" if member.full_name else member.person


def _as(member: Member) -> str:
    role = "" if member.role is CourseRole.STUDENT else f", as {member.role}"
    return role + (f", section {member.section}" if member.section else "")


def _differences(before: Member, after: Member) -> Iterator[str]:
    if before.role is not after.role:
        yield f"{before.role} → {after.role}"
    if before.section != after.section:
        yield f"section {before.section or 'none'} → {after.section or 'none'}"
    if before.full_name != after.full_name:
        yield f"name {before.full_name or 'none'} → {after.full_name or 'none'}"
