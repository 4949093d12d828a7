"""Calls for courses."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from pydantic import BaseModel

from ...proofs.document import ProofDocument
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
    NewAccountsOut,
    OutageIn,
    OutageOut,
    OutagesOut,
    PrefixIn,
    PrefixOut,
    ReceiptOut,
    ReceiptsOut,
    ReleasedOut,
    ReleaseIn,
    SubmitIn,
)
from ...schemas.coursework.leaderboards import (
    LeaderboardEntryOut,
    LeaderboardIn,
    LeaderboardLogOut,
    LeaderboardOut,
    LeaderboardRuleOut,
    WeightsIn,
)
from ...schemas.coursework.official_checks import (
    OfficialCheckLogOut,
    OfficialCheckOut,
    OfficialCheckRuleIn,
    OfficialCheckRuleOut,
    OfficialChecksOut,
)
from ...schemas.coursework.rehearsals import (
    RehearsalIn,
    RehearsalOut,
    RehearsalScheduleIn,
    RehearsalsOut,
)
from ...schemas.grading import (
    CourseGradebookOut,
    FeedbackIn,
    FeedbackOut,
    GradeIn,
    GradesOut,
    GradingOut,
    MyGradeOut,
    RegradeIn,
    RegradeOut,
    RegradeReplyIn,
    RegradesOut,
)
from ...schemas.schedules import ScheduleOut, SchedulesOut
from ..transport.calls import RELEASE_SECONDS, Call
from ..transport.connection import Connection, segment

M = TypeVar("M", bound=BaseModel)
_CLASS_SECONDS = 300.0
"""Registering a large class in JupyterHub takes a while."""


class CourseCalls(Connection):
    """The part of ``AsyncClient`` for courses.

    Raises:
        NotFound: the course does not exist, or the caller may not see it.
        Forbidden: the caller's role does not permit the call.
    """

    # -- courses --------------------------------------------------------------------------

    async def courses(self) -> list[CourseOut]:
        """Return the courses in which the caller has a role."""
        return (await self._get("courses", CoursesOut)).courses

    async def course(self, course: str) -> CourseOut:
        return await self._get(_course(course), CourseOut)

    async def create_course(self, body: CourseIn) -> CourseOut:
        return await self._send_body("POST", "courses", CourseOut, body, silence=_CLASS_SECONDS)

    async def preview_course(self, body: CourseIn) -> ConsequencesOut:
        """Preview ``create_course``; nothing is created."""
        call = replace(
            _call("POST", "courses", body), query={"dry_run": "true"}, silence=_CLASS_SECONDS
        )
        return self._read(await self._transport.send(call), ConsequencesOut)

    async def clone_course(self, course: str, body: CloneIn) -> CourseOut:
        return await self._send_body("POST", f"{_course(course)}/clone", CourseOut, body)

    async def archive_course(self, course: str, *, undo: bool = False) -> CourseOut:
        call = Call(method="DELETE" if undo else "PUT", path=f"{_course(course)}/archive")
        return await self._send_repeatable(call, CourseOut)

    async def course_members(self, course: str) -> MembersOut:
        return await self._get(f"{_course(course)}/members", MembersOut)

    async def set_roster(
        self, course: str, students: str, *, dry_run: bool = False
    ) -> ConsequencesOut:
        """Replace the roster of a course.

        Args:
            students: the roster of the whole class as CSV.
            dry_run: return the consequences without a change.
        """
        call = Call(
            method="PUT",
            path=f"{_course(course)}/roster",
            json={"students": students},
            query={"dry_run": "true"} if dry_run else {},
            silence=_CLASS_SECONDS,
        )
        return self._read(await self._transport.send(call), ConsequencesOut)

    async def create_accounts(self, course: str) -> NewAccountsOut:
        """Create missing accounts of a class, as many as fit into one call."""
        call = Call(method="POST", path=f"{_course(course)}/accounts", silence=_CLASS_SECONDS)
        return self._read(await self._transport.send(call), NewAccountsOut)

    # -- assignments ----------------------------------------------------------------------

    async def assignments(self, course: str) -> list[AssignmentOut]:
        return (await self._get(f"{_course(course)}/assignments", AssignmentsOut)).assignments

    async def release(self, course: str, assignment: str, body: ReleaseIn) -> ReleasedOut:
        """Release a new version of an assignment.

        Retried after a lost connection: the same files do not create another version.
        """
        path = f"{_assignment(course, assignment)}/release"
        call = replace(_call("POST", path, body), silence=RELEASE_SECONDS)
        return await self._send_repeatable(call, ReleasedOut)

    async def withdraw_assignment(self, course: str, assignment: str) -> None:
        """Hide an assignment from students. Safe to repeat."""
        path = f"{_assignment(course, assignment)}/release"
        await self._transport.send(Call(method="DELETE", path=path))

    async def prefix(self, course: str, assignment: str) -> PrefixOut:
        """Return the prefix of an assignment, and what jobs have saved with it."""
        return await self._get(f"{_assignment(course, assignment)}/prefix", PrefixOut)

    async def set_prefix(self, course: str, assignment: str, body: PrefixIn) -> PrefixOut:
        """Switch the prefix of an assignment on or off. Safe to repeat."""
        path = f"{_assignment(course, assignment)}/prefix"
        return await self._send_body("PUT", path, PrefixOut, body)

    async def clear_prefix_cache(self, course: str, assignment: str) -> PrefixOut:
        """Delete what the computation of the prefix has compiled. Safe to repeat."""
        path = f"{_assignment(course, assignment)}/prefix/compile-cache"
        return await self._read_call(Call(method="DELETE", path=path), PrefixOut)

    async def fetch_assignment(
        self, course: str, assignment: str, *, version: int | None = None
    ) -> HandOutOut:
        """Return the files of a released version, by default of the newest one."""
        path = f"{_assignment(course, assignment)}/hand-out"
        query = {} if version is None else {"version": version}
        call = Call(method="GET", path=path, query=query)
        return self._read(await self._transport.send(call), HandOutOut)

    async def grant_extension(
        self, course: str, assignment: str, body: ExtensionIn
    ) -> ConsequencesOut:
        path = f"{_assignment(course, assignment)}/extensions"
        return await self._send_body("POST", path, ConsequencesOut, body)

    async def revoke_extensions(
        self, course: str, assignment: str, *, person: str = "", section: str = ""
    ) -> ConsequencesOut:
        """Revoke all extensions of a student or a section."""
        query = {"person": person} if person else {"section": section}
        path = f"{_assignment(course, assignment)}/extensions"
        call = Call(method="DELETE", path=path, query=query)
        return self._read(await self._transport.send(call), ConsequencesOut)

    async def extensions(self, course: str, assignment: str) -> list[ExtensionOut]:
        """Return the extensions in the order in which they were granted."""
        path = f"{_assignment(course, assignment)}/extensions"
        return (await self._get(path, ExtensionsOut)).extensions

    # -- submissions ----------------------------------------------------------------------

    async def submit_assignment(self, course: str, assignment: str, body: SubmitIn) -> ReceiptOut:
        """Submit files to an assignment.

        Retried after a lost connection: the same files get the same receipt.
        """
        path = f"{_assignment(course, assignment)}/submissions"
        return await self._send_repeatable(_call("POST", path, body), ReceiptOut)

    async def receipts(self, course: str, assignment: str, *, person: str = "") -> list[ReceiptOut]:
        """Return the receipts of submissions.

        Students see their own; teachers and graders see those of all students, or of ``person``.
        """
        path = f"{_assignment(course, assignment)}/submissions"
        query = {"person": person} if person else {}
        call = Call(method="GET", path=path, query=query)
        return self._read(await self._transport.send(call), ReceiptsOut).receipts

    async def submission_files(self, submission: int) -> HandedInOut:
        """Return a submission with its files."""
        return await self._get(f"submissions/{submission}", HandedInOut)

    async def select_submission(self, submission: int, *, undo: bool = False) -> ReceiptOut:
        """Select this submission of the student for grading, regardless of its time."""
        path = f"submissions/{submission}/counts"
        return await self._send_repeatable(
            Call(method="DELETE" if undo else "PUT", path=path), ReceiptOut
        )

    # -- checks ---------------------------------------------------------------------------

    async def check(self, course: str, assignment: str, body: SubmitIn) -> CheckOut:
        """Check these files, or without files the latest submission."""
        path = f"{_assignment(course, assignment)}/checks"
        return await self._send_repeatable(_call("POST", path, body), CheckOut)

    async def checks(self, course: str, assignment: str) -> list[CheckOut]:
        """Return the caller's own checks of the last day, newest first."""
        return (await self._get(f"{_assignment(course, assignment)}/checks", ChecksOut)).checks

    async def official_check(
        self, course: str, assignment: str, body: SubmitIn
    ) -> OfficialCheckOut:
        """Run the hidden tests on these files, or without files on the latest submission."""
        path = f"{_assignment(course, assignment)}/official-checks"
        return await self._send_repeatable(_call("POST", path, body), OfficialCheckOut)

    async def official_checks(self, course: str, assignment: str) -> OfficialChecksOut:
        """Return the caller's own official checks, and how many are left today."""
        path = f"{_assignment(course, assignment)}/official-checks"
        return await self._get(path, OfficialChecksOut)

    async def allow_official_checks(
        self, course: str, assignment: str, body: OfficialCheckRuleIn
    ) -> OfficialCheckRuleOut:
        path = f"{_assignment(course, assignment)}/official-checks/rule"
        return await self._send_repeatable(_call("PUT", path, body), OfficialCheckRuleOut)

    async def forbid_official_checks(self, course: str, assignment: str) -> OfficialCheckRuleOut:
        path = f"{_assignment(course, assignment)}/official-checks/rule"
        return await self._send_repeatable(Call(method="DELETE", path=path), OfficialCheckRuleOut)

    async def official_check_log(self, course: str, assignment: str) -> OfficialCheckLogOut:
        """Return the rule, and all official checks of an assignment with their receipts."""
        path = f"{_assignment(course, assignment)}/official-checks/log"
        return await self._get(path, OfficialCheckLogOut)

    # -- leaderboards ---------------------------------------------------------------------

    async def open_leaderboard(
        self, course: str, assignment: str, body: LeaderboardIn
    ) -> LeaderboardRuleOut:
        """Open the leaderboard of an assignment, or change it."""
        path = f"{_assignment(course, assignment)}/leaderboard"
        return await self._send_repeatable(_call("PUT", path, body), LeaderboardRuleOut)

    async def close_leaderboard(self, course: str, assignment: str) -> LeaderboardRuleOut:
        """Take no further submissions to the leaderboard; its table stays."""
        path = f"{_assignment(course, assignment)}/leaderboard"
        return await self._send_repeatable(Call(method="DELETE", path=path), LeaderboardRuleOut)

    async def score_leaderboard_again(self, course: str, assignment: str) -> LeaderboardLogOut:
        """Score the submissions again that a fault left without score."""
        path = f"{_assignment(course, assignment)}/leaderboard/again"
        return await self._send_repeatable(Call(method="POST", path=path), LeaderboardLogOut)

    async def leaderboard(self, course: str, assignment: str) -> LeaderboardOut:
        """Return the table with pseudonyms, and the caller's own submissions."""
        return await self._get(f"{_assignment(course, assignment)}/leaderboard", LeaderboardOut)

    async def leaderboard_log(self, course: str, assignment: str) -> LeaderboardLogOut:
        """Return the table with names and private scores, and all submissions."""
        path = f"{_assignment(course, assignment)}/leaderboard/log"
        return await self._get(path, LeaderboardLogOut)

    async def submit_weights(
        self, course: str, assignment: str, body: WeightsIn
    ) -> LeaderboardEntryOut:
        """Submit weights to the leaderboard of an assignment."""
        path = f"{_assignment(course, assignment)}/leaderboard/submissions"
        return await self._send_repeatable(_call("POST", path, body), LeaderboardEntryOut)

    # -- rehearsals -----------------------------------------------------------------------

    async def rehearse(self, course: str, body: RehearsalIn) -> RehearsalOut:
        """Run every solution and hand-out on an image, or return the rehearsal in progress."""
        call = _call("POST", f"{_course(course)}/rehearsals", body)
        return await self._send_repeatable(call, RehearsalOut)

    async def rehearsals(self, course: str) -> list[RehearsalOut]:
        """Return the newest rehearsals of a course, newest first."""
        return (await self._get(f"{_course(course)}/rehearsals", RehearsalsOut)).rehearsals

    async def schedule_rehearsals(self, course: str, body: RehearsalScheduleIn) -> ScheduleOut:
        """Rehearse a course at set times; `change_schedule` and `remove_schedule` end that."""
        body = body.model_copy(
            update={"idempotency_key": body.idempotency_key or secrets.token_hex(16)}
        )
        call = _call("POST", f"{_course(course)}/rehearsals/schedules", body)
        return await self._send_repeatable(call, ScheduleOut)

    async def rehearsal_schedules(self, course: str) -> list[ScheduleOut]:
        """Return the schedules of a course's rehearsals, of all its teachers."""
        path = f"{_course(course)}/rehearsals/schedules"
        return (await self._get(path, SchedulesOut)).schedules

    async def rehearsal(self, course: str, rehearsal: str) -> RehearsalOut:
        path = f"{_course(course)}/rehearsals/{segment(rehearsal)}"
        return await self._get(path, RehearsalOut)

    # -- grading --------------------------------------------------------------------------

    async def grade(self, course: str, assignment: str, body: GradeIn) -> GradingOut:
        """Start a grading run.

        Retried after a lost connection: an open run is returned.
        """
        path = f"{_assignment(course, assignment)}/grading"
        return await self._send_repeatable(_call("POST", path, body), GradingOut)

    async def grades(self, course: str, assignment: str) -> GradesOut:
        return await self._get(f"{_assignment(course, assignment)}/grading", GradesOut)

    async def coursework_proof(self, course: str, assignment: str) -> ProofDocument:
        """Return the proof of the caller's own submissions, and of their released feedback."""
        return await self._get(f"{_assignment(course, assignment)}/proof", ProofDocument)

    async def my_grade(self, course: str, assignment: str) -> MyGradeOut:
        """Return a student's own grade, as of the last release of feedback."""
        return await self._get(f"{_assignment(course, assignment)}/my-grade", MyGradeOut)

    async def release_feedback(self, course: str, assignment: str, person: str) -> ConsequencesOut:
        """Release feedback on the current grade of one student."""
        call = _call(
            "POST", f"{_assignment(course, assignment)}/feedback", FeedbackIn(person=person)
        )
        return await self._send_repeatable(call, ConsequencesOut)

    async def feedback(self, submission: int) -> FeedbackOut:
        """Return the feedback pages; none before the feedback is released."""
        return await self._get(f"submissions/{submission}/feedback", FeedbackOut)

    # -- outages --------------------------------------------------------------------------

    async def gradebook(self, course: str) -> CourseGradebookOut:
        """Return the points of all students in all assignments."""
        return await self._get(f"{_course(course)}/gradebook", CourseGradebookOut)

    async def regrades(self, course: str) -> list[RegradeOut]:
        """Return the regrade requests of a course; for a student, their own."""
        return (await self._get(f"{_course(course)}/regrades", RegradesOut)).regrades

    async def ask_for_regrade(self, course: str, assignment: str, body: RegradeIn) -> RegradeOut:
        """Open a regrade request. The same again returns the open one."""
        path = f"{_assignment(course, assignment)}/regrades"
        return await self._send_repeatable(_call("POST", path, body), RegradeOut)

    async def answer_regrade(self, regrade: int, body: RegradeReplyIn) -> RegradeOut:
        """Add a message to a regrade request, close it, or both. Safe to repeat."""
        call = _call("POST", f"regrades/{regrade}/messages", body)
        return await self._send_repeatable(call, RegradeOut)

    async def outages(self) -> list[OutageOut]:
        return (await self._get("outages", OutagesOut)).outages

    async def record_outage(self, body: OutageIn) -> ConsequencesOut:
        return await self._send_body("POST", "outages", ConsequencesOut, body)

    async def _send_body(
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
    fields: Mapping[str, object] = body.model_dump(mode="json", exclude_unset=True)
    return Call(method=method, path=path, json=fields)


def _course(course: str) -> str:
    return f"courses/{segment(course)}"


def _assignment(course: str, assignment: str) -> str:
    return f"{_course(course)}/assignments/{segment(assignment)}"
