"""Compute a student's grade: the newest verdict on each cell, or the points of a person."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from ...hub.schemas.grading import CellScoreOut, GradeOut
from ..model.records import CellScore, Feedback, Member, Submission, SubmissionVerdict
from .reader import GradebookEntry, GradebookPage

BY_HAND = "by hand"
"""The word of a cell whose points a person gave."""
_FIELDS = tuple(field.name for field in fields(CellScore))
"""Computed once: a class has thousands of cells, and ``asdict`` would be slow."""


def grades(
    member: Member,
    sent: Submission,
    verdicts: Iterable[SubmissionVerdict],
    penalty: float,
    *,
    given: Feedback | None = None,
    page: GradebookPage | None = None,
) -> GradeOut:
    """The grade of one submission.

    Args:
        verdicts: of all runs, in the order of the runs.
        penalty: the part of the points that lateness costs.
        given: the feedback that was released.
        page: the student's page of the gradebook; its points replace those of the tests.
    """
    own = [each for each in verdicts if each.submission == sent.id]
    entries = page.cells if page is not None and page.is_of(sent.at) else {}
    cells = [
        with_entry(cell, entries.get((cell.notebook, cell.cell))) for cell in newest_cells(own)
    ]
    last = own[-1] if own else None
    points = sum(cell.score or 0.0 for cell in cells)
    return GradeOut(
        person=member.person,
        full_name=member.full_name,
        section=member.section,
        submission=sent.id,
        number=sent.number,
        graded_at=last.at if last else None,
        score=points * (1 - penalty),
        max_score=sum(cell.max_score for cell in cells),
        penalty=penalty,
        review=any(cell.review for cell in cells),
        provisional=sum(cell.waits for cell in cells),
        cells=cells,
        notes=list(last.notes) if last else [],
        why_not=last.why_not if last else "Not graded yet.",
        feedback_at=given.released_at if given else None,
    )


def newest_cells(verdicts: Iterable[SubmissionVerdict]) -> list[CellScore]:
    """The newest score of each cell, from the verdicts on one submission."""
    cells: dict[tuple[str, str], CellScore] = {}
    for verdict in verdicts:
        cells |= {(cell.notebook, cell.cell): cell for cell in verdict.cells}
    return list(cells.values())


def with_entry(cell: CellScore, entry: GradebookEntry | None) -> CellScoreOut:
    """A cell with its entry in the gradebook: a person's points replace those of the test."""
    said = {name: getattr(cell, name) for name in _FIELDS}
    if entry is not None:
        said |= {"review": entry.waits, "comment": entry.comment, "by_hand": entry.by_hand}
        said |= {"given": entry.given, "extra": entry.extra, "takes_comment": entry.takes_comment}
        if entry.by_hand:
            said["score"] = entry.score
        if entry.given is not None:
            said |= {"word": BY_HAND, "sentence": "A person gave these points."}
    return CellScoreOut(**said)
