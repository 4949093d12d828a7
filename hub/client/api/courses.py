"""Calls for courses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from pydantic import BaseModel

from ...schemas.admin import ConsequencesOut
from ...schemas.checks import CheckOut, ChecksOut
from ...schemas.courses import (
    AssignmentOut,
    AssignmentsOut,
    CloneIn,
    CourseIn,
    CourseOut,
    CoursesOut,
    ExtensionIn,
    ExtensionOut,
    ExtensionsOut,
    HandedInOut,
    HandOutOut,
    MembersOut,
    OutageIn,
    OutageOut,
    OutagesOut,
    ReceiptOut,
    ReceiptsOut,
    ReleasedOut,
    ReleaseIn,
    SubmitIn,
)
from ...schemas.grading import FeedbackIn, FeedbackOut, GradeIn, GradesOut, GradingOut, MyGradeOut
from ..transport.calls import RELEASE_SECONDS, Call
from ..transport.connection import Connection, segment

M = TypeVar("M", bound=BaseModel)
_CLASS_SECONDS = 300.0
"""Registering a large class in JupyterHub takes a while."""


class CourseCalls(Connection):
    """The part of ``AsyncClient`` for courses.

    Raises NotFound for what the caller may not see, Forbidden for what their role may not do.
    """

    # -- courses --------------------------------------------------------------------------

    async def courses(self) -> list[CourseOut]:
        """Return the courses in which the caller has a role."""
        return (await self._get("courses", CoursesOut)).courses

    async def course(self, course: str) -> CourseOut:
        return await self._get(_course(course), CourseOut)

    async def create_course(self, body: CourseIn) -> CourseOut:
        return await self._sent("POST", "courses", CourseOut, body, silence=_CLASS_SECONDS)

    async def preview_course(self, body: CourseIn) -> ConsequencesOut:
        """Preview ``create_course``; nothing is created."""
        call = replace(
            _call("POST", "courses", body), query={"dry_run": "true"}, silence=_CLASS_SECONDS
        )
        return self._read(await self._transport.send(call), ConsequencesOut)

    async def clone_course(self, course: str, body: CloneIn) -> CourseOut:
        return await self._sent("POST", f"{_course(course)}/clone", CourseOut, body)

    async def archive_course(self, course: str, *, undo: bool = False) -> CourseOut:
        call = Call(method="DELETE" if undo else "PUT", path=f"{_course(course)}/archive")
        return await self._repeated(call, CourseOut)

    async def course_members(self, course: str) -> MembersOut:
        return await self._get(f"{_course(course)}/members", MembersOut)

    async def set_roster(
        self, course: str, students: str, *, dry_run: bool = False
    ) -> ConsequencesOut:
        """``students``: the CSV file of the whole class."""
        call = Call(
            method="PUT",
            path=f"{_course(course)}/roster",
            json={"students": students},
            query={"dry_run": "true"} if dry_run else {},
            silence=_CLASS_SECONDS,
        )
        return self._read(await self._transport.send(call), ConsequencesOut)

    # -- assignments ----------------------------------------------------------------------

    async def assignments(self, course: str) -> list[AssignmentOut]:
        return (await self._get(f"{_course(course)}/assignments", AssignmentsOut)).assignments

    async def release(self, course: str, assignment: str, body: ReleaseIn) -> ReleasedOut:
        """Safe to repeat, so it is retried: the same files are not a new version."""
        path = f"{_assignment(course, assignment)}/release"
        call = replace(_call("POST", path, body), silence=RELEASE_SECONDS)
        return await self._repeated(call, ReleasedOut)

    async def hand_out(
        self, course: str, assignment: str, *, version: int | None = None
    ) -> HandOutOut:
        """Return the newest version by default."""
        path = f"{_assignment(course, assignment)}/hand-out"
        query = {} if version is None else {"version": version}
        call = Call(method="GET", path=path, query=query)
        return self._read(await self._transport.send(call), HandOutOut)

    async def give_time(self, course: str, assignment: str, body: ExtensionIn) -> ConsequencesOut:
        path = f"{_assignment(course, assignment)}/extensions"
        return await self._sent("POST", path, ConsequencesOut, body)

    async def take_time_back(
        self, course: str, assignment: str, *, person: str = "", section: str = ""
    ) -> ConsequencesOut:
        """Revoke all extensions of a student or a section."""
        whose = {"person": person} if person else {"section": section}
        path = f"{_assignment(course, assignment)}/extensions"
        call = Call(method="DELETE", path=path, query=whose)
        return self._read(await self._transport.send(call), ConsequencesOut)

    async def extensions(self, course: str, assignment: str) -> list[ExtensionOut]:
        """Return the extensions in the order in which they were granted."""
        path = f"{_assignment(course, assignment)}/extensions"
        return (await self._get(path, ExtensionsOut)).extensions

    # -- submissions ----------------------------------------------------------------------

    async def hand_in(self, course: str, assignment: str, body: SubmitIn) -> ReceiptOut:
        """Safe to repeat, so it is retried: the same files have the same receipt."""
        path = f"{_assignment(course, assignment)}/submissions"
        return await self._repeated(_call("POST", path, body), ReceiptOut)

    async def receipts(self, course: str, assignment: str, *, person: str = "") -> list[ReceiptOut]:
        """Return a student's own; for teachers and graders those of all students or of one."""
        path = f"{_assignment(course, assignment)}/submissions"
        query = {"person": person} if person else {}
        call = Call(method="GET", path=path, query=query)
        return self._read(await self._transport.send(call), ReceiptsOut).receipts

    async def handed_in(self, submission: int) -> HandedInOut:
        """Return a submission with its files."""
        return await self._get(f"submissions/{submission}", HandedInOut)

    async def let_count(self, submission: int, *, undo: bool = False) -> ReceiptOut:
        """Grade this submission of the student, regardless of its time."""
        path = f"submissions/{submission}/counts"
        return await self._repeated(Call(method="DELETE" if undo else "PUT", path=path), ReceiptOut)

    # -- checks ---------------------------------------------------------------------------

    async def check(self, course: str, assignment: str, body: SubmitIn) -> CheckOut:
        """Check these files, or without files the latest submission."""
        path = f"{_assignment(course, assignment)}/checks"
        return await self._repeated(_call("POST", path, body), CheckOut)

    async def checks(self, course: str, assignment: str) -> list[CheckOut]:
        """Return the caller's own checks of the last day, newest first."""
        return (await self._get(f"{_assignment(course, assignment)}/checks", ChecksOut)).checks

    # -- grading --------------------------------------------------------------------------

    async def grade(self, course: str, assignment: str, body: GradeIn) -> GradingOut:
        """Safe to repeat, so it is retried: an open run is returned."""
        path = f"{_assignment(course, assignment)}/grading"
        return await self._repeated(_call("POST", path, body), GradingOut)

    async def grades(self, course: str, assignment: str) -> GradesOut:
        return await self._get(f"{_assignment(course, assignment)}/grading", GradesOut)

    async def my_grade(self, course: str, assignment: str) -> MyGradeOut:
        """Return a student's own grade, as of the last release of feedback."""
        return await self._get(f"{_assignment(course, assignment)}/my-grade", MyGradeOut)

    async def release_feedback(self, course: str, assignment: str, person: str) -> ConsequencesOut:
        """Release feedback on the current grade of one student."""
        call = _call(
            "POST", f"{_assignment(course, assignment)}/feedback", FeedbackIn(person=person)
        )
        return await self._repeated(call, ConsequencesOut)

    async def feedback(self, submission: int) -> FeedbackOut:
        """Return the pages of feedback; none before feedback was released."""
        return await self._get(f"submissions/{submission}/feedback", FeedbackOut)

    # -- outages --------------------------------------------------------------------------

    async def outages(self) -> list[OutageOut]:
        return (await self._get("outages", OutagesOut)).outages

    async def record_outage(self, body: OutageIn) -> ConsequencesOut:
        return await self._sent("POST", "outages", ConsequencesOut, body)

    async def _sent(
        self,
        method: str,
        path: str,
        model: type[M],
        body: BaseModel,
        *,
        silence: float | None = None,
    ) -> M:
        call = replace(_call(method, path, body), silence=silence)
        return self._read(await self._transport.send(call), model)


def _call(method: str, path: str, body: BaseModel) -> Call:
    # Defaults are not sent, so that an older service understands the request.
    given: Mapping[str, object] = body.model_dump(mode="json", exclude_unset=True)
    return Call(method=method, path=path, json=given)


def _course(course: str) -> str:
    return f"courses/{segment(course)}"


def _assignment(course: str, assignment: str) -> str:
    return f"{_course(course)}/assignments/{segment(assignment)}"
