"""The page on which a person gives points and comments, one student after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Path, Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from .....courses.manual_grading.service import numbers_of
from ....errors import CarrelError, InvalidInput, NotFound
from ....schemas import LARGEST
from ....schemas.grading import CellScoreOut, GradeOut, GradesOut, ManualPointsIn, SeenPointsIn
from ...dependencies.callers import Carrel
from ...dependencies.context import WebContext
from ...dependencies.course_paths import AssignmentName, CourseName
from ...dependencies.edit_versions import version_for
from ...dependencies.redirects import SEE_OTHER
from ...dependencies.visitors import Follower, Form, Guest, html
from ...html.cell_output import SANDBOXED
from ...html.frame_style import theme_of
from ...html.notebook import notebook_page
from ...html.urls import course_url
from ...security.access import Visitor

_MOST_POINTS = 1e9
StudentNumber = Annotated[int, Path(ge=1, le=LARGEST)]
NotebookName = Annotated[str, Path(max_length=1000)]

router = APIRouter(include_in_schema=False, prefix="/course/{course}/grading/{assignment}/manual")


@dataclass(frozen=True, slots=True, kw_only=True)
class ManualView:
    """How a grader goes through the class.

    Attributes:
        blind: names are replaced by numbers, in whose order the students come.
        only: the id of the one cell to grade; empty for all.
    """

    blind: bool = False
    only: str = ""

    def query(self, **more: str) -> str:
        found = {"blind": "yes" if self.blind else "", "only": self.only} | more
        return urlencode({name: value for name, value in found.items() if value})


async def _view(
    blind: Annotated[str, Query(max_length=3)] = "",
    only: Annotated[str, Query(max_length=1000)] = "",
) -> ManualView:
    return ManualView(blind=blind == "yes", only=only)


Chosen = Annotated[ManualView, Depends(_view)]


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedWork:
    """One student's graded work, as the page lists it.

    Attributes:
        waiting: the cells that need a person, of those that are graded here.
    """

    number: int
    grade: GradeOut
    waiting: tuple[CellScoreOut, ...]


@router.get("")
def first(
    web: Carrel, visitor: Guest, course: CourseName, assignment: AssignmentName, view: Chosen
) -> Response:
    """Go to the first student with a cell that needs a person, else to the first student."""
    found = web.courses.grading.grades(visitor.identity, course, assignment)
    works = _works(found, view)
    work = next((each for each in works if each.waiting), works[0] if works else None)
    if work is None:
        raise NotFound(f"Nothing in {assignment} has been graded yet.", accepted="Grade it first.")
    return _to(found, view, work)


@router.get("/{number}")
def student(
    *,
    web: Carrel,
    visitor: Guest,
    course: CourseName,
    assignment: AssignmentName,
    number: StudentNumber,
    view: Chosen,
    at: Annotated[str, Query(max_length=2100)] = "",
    saved: Annotated[str, Query(max_length=1000)] = "",
) -> Response:
    """Show the graded notebook of one student, with a form for each cell."""
    found = web.courses.grading.grades(visitor.identity, course, assignment)
    return _page(web, visitor, found, number, view, at=at, saved=saved)


@router.post("/{number}")
def save(
    *,
    web: Carrel,
    visitor: Guest,
    course: CourseName,
    assignment: AssignmentName,
    number: StudentNumber,
    view: Chosen,
    fields: Form,
) -> Response:
    """Store points and a comment, and go to the next cell that needs a person."""
    who = visitor.identity
    found = web.courses.grading.grades(who, course, assignment)
    person = _work(_works(found, view), number).grade.person
    try:
        body = _body(fields, person)
        web.courses.manual_grading.set_points(who, course, assignment, body)
    except CarrelError as error:
        found = web.courses.grading.grades(who, course, assignment)
        return _page(web, visitor, found, number, view, error=error, filled=fields)
    found = web.courses.grading.grades(who, course, assignment)
    works = _works(found, view)
    cell, work = _next(works, _work(works, number), f"{body.notebook}/{body.cell}")
    return _to(found, view, work, at=_place(cell) if cell else "", saved=body.cell)


@router.get("/{number}/notebook/{name}")
def notebook(
    *,
    request: Request,
    web: Carrel,
    visitor: Follower,
    course: CourseName,
    assignment: AssignmentName,
    number: StudentNumber,
    name: NotebookName,
) -> Response:
    """Return the graded notebook, without scripts; each graded cell can be linked to."""
    found = web.courses.grading.grades(visitor.identity, course, assignment)
    person = _work(_works(found, ManualView()), number).grade.person
    content = web.courses.manual_grading.notebook(
        visitor.identity, course, assignment, person, name
    )
    page = notebook_page(f"{name}.ipynb", content, theme_of(request), anchor=_grade_id)
    return Response(page, media_type="text/html; charset=utf-8", headers=SANDBOXED)


# -- internal ---------------------------------------------------------------------------------


def _grade_id(metadata: Mapping[str, object]) -> str:
    role = metadata.get("nbgrader")
    return str(role.get("grade_id") or "") if isinstance(role, Mapping) else ""


def _works(found: GradesOut, view: ManualView) -> list[GradedWork]:
    """The graded students: by name, or by number if names are hidden."""
    numbers = numbers_of(found.course, found.assignment, found.grades)
    works = [
        GradedWork(
            number=numbers[grade.person],
            grade=grade,
            waiting=tuple(
                cell for cell in grade.cells if cell.waits and view.only in {"", cell.cell}
            ),
        )
        for grade in found.grades
        if grade.person in numbers
    ]
    return sorted(works, key=lambda each: each.number) if view.blind else works


def _work(works: Sequence[GradedWork], number: int) -> GradedWork:
    for work in works:
        if work.number == number:
            return work
    raise NotFound("There is no graded submission with this number.")


def _place(cell: CellScoreOut) -> str:
    return f"{cell.notebook}/{cell.cell}"


def _next(
    works: Sequence[GradedWork], here: GradedWork, after: str
) -> tuple[CellScoreOut | None, GradedWork]:
    """The next cell that needs a person: of this student, else of the next one who has any."""
    position = [_place(cell) for cell in here.grade.cells].index(after)
    later = [cell for cell in here.grade.cells[position + 1 :] if cell in here.waiting]
    if found := later or list(here.waiting):
        return found[0], here
    start = works.index(here)
    for work in (*works[start + 1 :], *works[:start]):
        if work.waiting:
            return work.waiting[0], work
    return None, here


def _body(fields: Mapping[str, str], person: str) -> ManualPointsIn:
    return ManualPointsIn(
        person=person,
        notebook=fields.get("notebook", "")[:1000] or "-",
        cell=fields.get("cell", "")[:1000] or "-",
        points=_points(fields.get("points", "")),
        comment=fields.get("comment", ""),
        seen=SeenPointsIn(
            points=_points(fields.get("seen_points", "")), comment=fields.get("seen_comment", "")
        ),
    )


def _points(text: str) -> float | None:
    """Points as they are typed, also with a decimal comma; None for an empty field."""
    if not text.strip():
        return None
    try:
        points = float(text.strip().replace(",", "."))
    except ValueError:
        points = float("nan")
    if not abs(points) <= _MOST_POINTS:  # also for "nan"
        raise InvalidInput(
            f"{text.strip()[:40]!r} is not a number of points.",
            accepted="Such as 2.5; empty for no points of a person.",
            field="points",
        )
    return points


def _to(found: GradesOut, view: ManualView, work: GradedWork, **more: str) -> RedirectResponse:
    address = course_url(found.course, "grading", found.assignment, "manual", str(work.number))
    query = view.query(**more)
    return RedirectResponse(f"{address}?{query}" if query else address, SEE_OTHER)


def _page(
    web: WebContext,
    visitor: Visitor,
    found: GradesOut,
    number: int,
    view: ManualView,
    *,
    at: str = "",
    saved: str = "",
    error: CarrelError | None = None,
    filled: Mapping[str, str] | None = None,
) -> Response:
    who, version = visitor.identity, version_for(web)
    works = _works(found, view)
    work = _work(works, number)
    position = works.index(work)
    cells = [cell for cell in work.grade.cells if view.only in {"", cell.cell}]
    filled = filled or {}
    at = f"{filled.get('notebook')}/{filled.get('cell')}" if filled else at
    current = next((cell for cell in cells if _place(cell) == at), None)
    current = current or next(iter(work.waiting or cells), None)
    page = web.render_for(
        visitor,
        "courses/manual_grading.html",
        version=version,
        place=web.courses.administration.show(who, found.course),
        found=found,
        view=view,
        query=view.query(),
        work=work,
        by_hand=[cell for cell in cells if _is_for_a_person(cell, view)],
        tests=[cell for cell in cells if not _is_for_a_person(cell, view)],
        current=current,
        before=works[position - 1] if position else None,
        after=works[position + 1] if position + 1 < len(works) else None,
        position=position + 1,
        students=len(works),
        waiting=sum(len(each.waiting) for each in works),
        waiting_students=sum(bool(each.waiting) for each in works),
        saved=saved,
        error=error,
        filled=filled,
        address=course_url(found.course, "grading", found.assignment),
    )
    return html(page, error.http_status if error else 200)


def _is_for_a_person(cell: CellScoreOut, view: ManualView) -> bool:
    """Whether the form of a cell is open; those of tests that a person need not see are folded."""
    return cell.waits or cell.takes_comment or cell.by_hand or bool(view.only)
