"""The values of rehearsals: a run of a course's assignments on a candidate image, and its jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ...hub.records.audit import AuditEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalJob:
    """The run of one assignment on one image.

    Attributes:
        request: the id of its request on the pool.
        version: the released version that it runs.
        image: digest; empty on an engine without images.
        result: as JSON; empty until it is known.
        why_not: why there is no result, once that is certain.
    """

    request: str
    assignment: str
    version: int
    image: str
    result: str = ""
    why_not: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """One rehearsal of a course.

    Attributes:
        image, present_image: references ``NAME@sha256:…``; empty where there is none.
        assignment: the only one that it runs; empty for all.
        jobs: of the candidate image and of the present one, by assignment.
    """

    id: str
    course: str
    image: str
    present_image: str
    assignment: str
    asked_at: float
    asked_by: str
    jobs: tuple[RehearsalJob, ...]


class RehearsalStore(Protocol):
    """Stores rehearsals. Each method is one transaction; ``change`` goes to the audit log."""

    def add(self, rehearsal: Rehearsal, *, change: AuditEntry | None = None) -> None:
        """Store a rehearsal with its jobs. Raises NotFound where there is no such course."""

    def newest(self, course: str, most: int) -> Sequence[Rehearsal]:
        """The newest rehearsals of a course, newest first."""

    def put_result(self, request: str, *, result: str = "", why_not: str = "") -> None:
        """Store how a job ended; the first result stays."""
