"""REST routes for students: checks, grades and leaderboards; with what teachers allow them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends

from ...proofs.document import ProofDocument
from ...schemas.checks import CheckOut, ChecksOut
from ...schemas.courses import SubmitIn
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
from ...schemas.grading import MyGradeOut
from ..dependencies.bodies import json_body
from ..dependencies.callers import Carrel, Reader, Writer
from ..dependencies.course_paths import AssignmentName, CourseName
from ..openapi.description import ERRORS, body_of

router = APIRouter(
    responses=ERRORS, tags=["courses"], prefix="/courses/{course}/assignments/{assignment}"
)


@router.post("/checks", summary="Check your work", openapi_extra=body_of(SubmitIn))
def check(
    web: Carrel,
    who: Writer,
    course: CourseName,
    assignment: AssignmentName,
    body: Annotated[SubmitIn, Depends(json_body(SubmitIn))],
) -> CheckOut:
    """Runs the visible tests as grading does, as a request on the pool. The result does not count.

    Without files it checks the latest submission. The same files again return the check in
    progress.
    """
    return web.courses.checks.start(who, course, assignment, body)


@router.get("/checks", summary="My checks")
def checks(web: Carrel, who: Reader, course: CourseName, assignment: AssignmentName) -> ChecksOut:
    """The caller's own checks of the last day, newest first."""
    return web.courses.checks.recent(who, course, assignment)


@router.post("/official-checks", summary="Run the hidden tests", openapi_extra=body_of(SubmitIn))
def official_check(
    web: Carrel,
    who: Writer,
    course: CourseName,
    assignment: AssignmentName,
    body: Annotated[SubmitIn, Depends(json_body(SubmitIn))],
) -> OfficialCheckOut:
    """Runs all tests on idle capacity, if the teacher allows it: answers a verdict and points.

    Without files it checks the latest submission. The same files again return the check in
    progress. A check that fails for the system's fault costs no run.
    """
    return web.courses.official_checks.start(who, course, assignment, body)


@router.get("/official-checks", summary="My official checks")
def official_checks(
    web: Carrel, who: Reader, course: CourseName, assignment: AssignmentName
) -> OfficialChecksOut:
    """The caller's own official checks, newest first, and how many are left today."""
    return web.courses.official_checks.mine(who, course, assignment)


@router.get("/official-checks/log", summary="All official checks")
def official_check_log(
    web: Carrel, who: Reader, course: CourseName, assignment: AssignmentName
) -> OfficialCheckLogOut:
    """For teachers and graders: the rule, and all checks with their signed receipts."""
    return web.courses.official_checks.log(who, course, assignment)


@router.put(
    "/official-checks/rule",
    summary="Allow official checks",
    openapi_extra=body_of(OfficialCheckRuleIn),
)
def allow_official_checks(
    web: Carrel,
    who: Writer,
    course: CourseName,
    assignment: AssignmentName,
    body: Annotated[OfficialCheckRuleIn, Depends(json_body(OfficialCheckRuleIn))],
) -> OfficialCheckRuleOut:
    """For teachers: how often a student may run the hidden tests on one day."""
    return web.courses.official_checks.allow(who, course, assignment, body)


@router.delete("/official-checks/rule", summary="Allow no further official checks")
def forbid_official_checks(
    web: Carrel, who: Writer, course: CourseName, assignment: AssignmentName
) -> OfficialCheckRuleOut:
    """For teachers. The log stays. Safe to repeat."""
    return web.courses.official_checks.forbid(who, course, assignment)


@router.get("/leaderboard", summary="The leaderboard")
def leaderboard(
    web: Carrel, who: Reader, course: CourseName, assignment: AssignmentName
) -> LeaderboardOut:
    """The table with pseudonyms, the caller's own submissions, and how many are left today."""
    return web.courses.leaderboards.show(who, course, assignment)


@router.get("/leaderboard/log", summary="All submissions to the leaderboard")
def leaderboard_log(
    web: Carrel, who: Reader, course: CourseName, assignment: AssignmentName
) -> LeaderboardLogOut:
    """For teachers and graders: the table with names and private scores, and each verdict."""
    return web.courses.leaderboards.log(who, course, assignment)


@router.put("/leaderboard", summary="Open a leaderboard", openapi_extra=body_of(LeaderboardIn))
def open_leaderboard(
    web: Carrel,
    who: Writer,
    course: CourseName,
    assignment: AssignmentName,
    body: Annotated[LeaderboardIn, Depends(json_body(LeaderboardIn))],
) -> LeaderboardRuleOut:
    """For teachers: what weights are scored on, and how many a student may submit on one day."""
    return web.courses.leaderboard_rules.open(who, course, assignment, body)


@router.delete("/leaderboard", summary="Take no further submissions")
def close_leaderboard(
    web: Carrel, who: Writer, course: CourseName, assignment: AssignmentName
) -> LeaderboardRuleOut:
    """For teachers. The table stays. Safe to repeat."""
    return web.courses.leaderboard_rules.close(who, course, assignment)


@router.post("/leaderboard/again", summary="Score submissions again")
def score_leaderboard_again(
    web: Carrel, who: Writer, course: CourseName, assignment: AssignmentName
) -> LeaderboardLogOut:
    """For teachers: scores the submissions that a fault of the system or of the files left.

    Safe to repeat.
    """
    return web.courses.leaderboards.score_again(who, course, assignment)


@router.post("/leaderboard/submissions", summary="Submit weights", openapi_extra=body_of(WeightsIn))
def submit_weights(
    web: Carrel,
    who: Writer,
    course: CourseName,
    assignment: AssignmentName,
    body: Annotated[WeightsIn, Depends(json_body(WeightsIn))],
) -> LeaderboardEntryOut:
    """Takes one safetensors file, which is scored on hidden data when the pool has idle capacity.

    The same file again returns its submission. A file that is refused costs none of the day.
    """
    return web.courses.leaderboard_submissions.submit(who, course, assignment, body)


@router.get("/proof", summary="Proof of my submissions")
def proof(
    web: Carrel, who: Reader, course: CourseName, assignment: AssignmentName
) -> ProofDocument:
    """For students: proves the own submissions, and the feedback that was released, offline.

    `carrel verify` reads the answer as a file. A line that is not anchored yet is anchored, and a
    new head signed.
    """
    return web.proofs().prove_coursework(who, course, assignment)


@router.get("/my-grade", summary="My grade")
def my_grade(
    web: Carrel, who: Reader, course: CourseName, assignment: AssignmentName
) -> MyGradeOut:
    """For students: the points by cell, as of the last release of feedback."""
    return web.courses.delivery.own_grade(who, course, assignment)
