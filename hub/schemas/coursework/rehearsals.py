"""Bodies of rehearsals: a course's solutions and hand-outs, run on a candidate image."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ..base import In, Out
from ..schedules import Cron, Key, Zone

REHEARSAL_RESULT = "rehearsal.json"
"""The result file in the attempt folder; only the service reads it."""
MOST_FINDINGS = 200
_IMAGE_LENGTH = 160


class RehearsalIn(In):
    """Body of ``POST /api/v1/courses/{course}/rehearsals``.

    ``image`` is a name, a reference or a digest; empty for the newest build of the course's image.
    ``assignment`` is empty for all released assignments.
    """

    image: Annotated[
        str, Field(max_length=_IMAGE_LENGTH, description="A name, a reference or a digest.")
    ] = ""
    assignment: Annotated[str, Field(max_length=64)] = ""


class RehearsalScheduleIn(RehearsalIn):
    """Body of ``POST /api/v1/courses/{course}/rehearsals/schedules``: a rehearsal, and its times.

    The same ``idempotency_key`` of the same teacher returns the first schedule.
    """

    cron: Cron
    zone: Zone = "UTC"
    idempotency_key: Key = ""


class RehearsalFindingOut(Out):
    """One thing that breaks; ``cell`` is empty for the whole notebook.

    ``part`` is ``solution`` or ``hand-out``. ``cell`` is the nbgrader id or ``cell N``, counted
    from 1. ``error`` is its first line.
    """

    part: str
    notebook: str
    cell: str
    error: str


class RehearsalResultOut(Out):
    """The result of one assignment on one image: what breaks, and the points of its tests."""

    findings: list[RehearsalFindingOut]
    solution_points: float = 0.0
    hand_out_points: float = 0.0
    max_points: float = 0.0
    seconds: float = 0.0


class RehearsedFindingOut(RehearsalFindingOut):
    """One thing that breaks on the candidate image.

    ``already`` tells whether the present image of the course has a finding for the same cell; null
    if that is not known.
    """

    already: bool | None = None


class RehearsedAssignmentOut(Out):
    """One assignment of a rehearsal.

    ``state`` is ``waiting``, ``works``, ``breaks`` or ``not tested``; ``why`` says why it was not
    tested, or what it waits for. ``requests`` are its jobs: on the candidate image, then on the
    present one.
    """

    assignment: str
    version: int
    state: str
    findings: list[RehearsedFindingOut] = []
    why: str = ""
    solution_points: float | None = None
    max_points: float | None = None
    requests: list[str]


class RehearsalOut(Out):
    """A rehearsal of a course.

    ``image`` and ``present_image`` are references, both empty on an engine without images;
    ``present_image`` is also empty if no engine has that image. ``done`` counts the assignments
    that were tested or could not be, of ``total``.
    """

    id: str
    course: str
    image: str
    present_image: str
    assignment: str
    asked_at: float
    asked_by: str
    ended: bool
    works: bool | None
    done: int
    total: int
    sentence: str
    assignments: list[RehearsedAssignmentOut]


class RehearsalsOut(Out):
    """Rehearsals of a course, newest first."""

    rehearsals: list[RehearsalOut]
