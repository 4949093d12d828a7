"""NotFound errors of the store of courses."""

from __future__ import annotations

from ...hub.errors import NotFound


def no_course(name: str) -> NotFound:
    return NotFound(f"There is no course {name[:80]}.", accepted="See: carrel course list")


def no_assignment(course: str, name: str) -> NotFound:
    return NotFound(
        f"{course[:80]} has no assignment {name[:80]}.",
        accepted=f"See: carrel course assignments {course[:80]}",
    )


def no_released_version(course: str, assignment: str, version: int | None) -> NotFound:
    if version is None:
        return NotFound(f"{assignment[:80]} of {course[:80]} is not released yet.")
    return NotFound(f"{assignment[:80]} of {course[:80]} has no version {version}.")


def no_submission(submission_id: int) -> NotFound:
    return NotFound(f"There is no submission {submission_id}.")


def no_regrade(regrade_id: int) -> NotFound:
    return NotFound(f"There is no regrade request {regrade_id}.")


def no_run(request: str) -> NotFound:
    return NotFound(f"There is no grading {request[:80]}.")
