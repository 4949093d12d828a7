"""Which course is meant, and how due times look in a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click

from ..client import Client
from ..errors import InvalidInput
from ..wire.courses import CourseOut
from . import printing

F = TypeVar("F", bound=Callable[..., object])
_ALSO_OTHERS = ("teacher", "grader")


def assignment_argument(function: F) -> F:
    return click.argument("assignment")(function)


def course_option(function: F) -> F:
    return click.option(
        "--course", default="", help="May be left out where there is only one in question."
    )(function)


def teaching(client: Client, named: str) -> str:
    """The course that is named, else the only one that this person teaches.

    Raises:
        InvalidInput: there is none, or there are several.
    """
    return named or _only((each for each in client.courses() if each.role == "teacher"), "teach")


def working(client: Client, named: str) -> str:
    """The course that is named, else the only one that this person is in.

    Raises:
        InvalidInput: there is none, or there are several.
    """
    return named or _only(client.courses(), "are in")


def in_question(client: Client, named: str) -> CourseOut:
    """The course that is named, else the only one that this person teaches, else is in.

    Raises:
        InvalidInput: there is none, or there are several.
    """
    if named:
        return client.course(named)
    mine = client.courses()
    taught = [each for each in mine if each.role == "teacher"]
    name = _only(taught, "teach") if taught else _only(mine, "are in")
    return next(each for each in mine if each.name == name)


def _only(courses: Iterable[CourseOut], how: str) -> str:
    found = [course.name for course in courses if course.archived_at is None]
    if len(found) == 1:
        return found[0]
    raise InvalidInput(
        f"You {how} {'several courses' if found else 'no course'}.",
        accepted=f"Name one with --course: {', '.join(found)}." if found else "",
    )


def due_text(due: float | None, zone: str) -> str:
    """In the reader's zone, and by the clock by which it was said where that is another."""
    if due is None:
        return "never"
    now = time.time()
    here = f"{printing.local_time(due, now)} ({printing.zone(due)})"
    try:
        there = datetime.fromtimestamp(due, ZoneInfo(zone))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return here
    if there.utcoffset() == datetime.fromtimestamp(due, UTC).astimezone().utcoffset():
        return here
    return f"{here}, which is {there:%-d %b %H:%M} in {zone}"
