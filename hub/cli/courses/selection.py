"""Selection of the course of a command, and the format of due dates."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click

from ...client import Client
from ...errors import InvalidInput
from ...schemas.courses import CourseOut
from ..common import display

F = TypeVar("F", bound=Callable[..., object])
GRADERS = ("teacher", "grader")


def assignment_argument(function: F) -> F:
    return click.argument("assignment")(function)


def course_option(function: F) -> F:
    return click.option("--course", default="", help="Optional if only one course is possible.")(
        function
    )


def teaching(client: Client, named: str) -> str:
    """Return the named course, else the only one that the user teaches.

    Raises:
        InvalidInput: there is none, or there are several.
    """
    return named or _only(client, _those(client, ("teacher",)), "teach").name


_NOT = {"teach": "do not teach", "teach or grade": "do not teach or grade", "are in": "are not in"}


def grading(client: Client, named: str, assignment: str) -> str:
    """Return the named course, else the only one with this assignment that the user grades.

    Raises:
        InvalidInput: there is none, or there are several.
    """
    return named or _only(client, _those(client, GRADERS), "teach or grade", assignment).name


def working(client: Client, named: str, assignment: str = "") -> str:
    """Return the named course, else the only one with this assignment that the user is in.

    Raises:
        InvalidInput: there is none, or there are several.
    """
    return named or _only(client, _those(client), "are in", assignment).name


def in_question(client: Client, named: str, assignment: str = "") -> CourseOut:
    """Return the named course, else the only one that the user teaches, grades or is in.

    Raises:
        InvalidInput: there is none, or there are several.
    """
    if named:
        return client.course(named)
    if graded := _those(client, GRADERS):
        return _only(client, graded, "teach or grade", assignment)
    return _only(client, _those(client), "are in", assignment)


def _those(client: Client, roles: Collection[str] = ()) -> list[CourseOut]:
    """Return the courses that are not archived, with these roles or any."""
    return [
        each
        for each in client.courses()
        if each.archived_at is None and (not roles or each.role in roles)
    ]


def _only(client: Client, found: Sequence[CourseOut], how: str, assignment: str = "") -> CourseOut:
    if len(found) > 1 and assignment:
        found = [each for each in found if _has(client, each, assignment)] or found
    if len(found) == 1:
        return found[0]
    names = ", ".join(each.name for each in found)
    raise InvalidInput(
        f"You {how} several courses." if found else f"You {_NOT[how]} a course.",
        accepted=f"Name one with --course: {names}." if found else "",
    )


def _has(client: Client, course: CourseOut, assignment: str) -> bool:
    return any(each.name == assignment for each in client.assignments(course.name))


def due_text(due: float | None, zone: str) -> str:
    """Format a due date in the local zone, and in its own zone if that differs."""
    if due is None:
        return "never"
    now = time.time()
    local = f"{display.local_time(due, now)} ({display.zone(due)})"
    try:
        in_zone = datetime.fromtimestamp(due, ZoneInfo(zone))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return local
    if in_zone.utcoffset() == datetime.fromtimestamp(due, UTC).astimezone().utcoffset():
        return local
    return f"{local}, which is {in_zone:%-d %b %H:%M} in {zone}"
