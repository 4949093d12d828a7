"""The gradebook of a whole course, as a page and as a table (CSV)."""

from __future__ import annotations

from statistics import fmean

from fastapi import APIRouter
from starlette.responses import Response

from .....courses.gradebook.csv_export import gradebook_csv, max_total, total
from ....schemas.grading import CourseGradebookOut
from ...dependencies.callers import Carrel
from ...dependencies.course_paths import CourseName
from ...dependencies.visitors import Guest, html
from ...html.downloads import attachment
from ...html.urls import course_url

router = APIRouter(include_in_schema=False, prefix="/course/{course}/gradebook")


@router.get("")
def gradebook(web: Carrel, visitor: Guest, course: CourseName) -> Response:
    """Show the points of all students in all assignments."""
    who = visitor.identity
    found = web.courses.gradebook.table(who, course)
    page = web.render_for(
        visitor,
        "courses/gradebook.html",
        course=web.courses.administration.show(who, course),
        found=found,
        totals=[total(row) for row in found.rows],
        most=max_total(found),
        means=_means(found),
        sections=any(row.section for row in found.rows),
        at=course_url(course),
        places=[course_url(course, "grading", each.name) for each in found.assignments],
    )
    return html(page)


@router.get("/csv")
def table(web: Carrel, visitor: Guest, course: CourseName) -> Response:
    """Download the table that ``carrel course gradebook --csv`` writes."""
    found = web.courses.gradebook.table(visitor.identity, course)
    saved = {"Content-Disposition": attachment(f"{course}-gradebook.csv")}
    return Response(gradebook_csv(found), media_type="text/csv; charset=utf-8", headers=saved)


def _means(found: CourseGradebookOut) -> list[float | None]:
    """The mean of each assignment, over the students who have points in it."""
    means = []
    for number in range(len(found.assignments)):
        scores = [row.scores[number].score for row in found.rows]
        known = [score for score in scores if score is not None]
        means.append(fmean(known) if known else None)
    return means
