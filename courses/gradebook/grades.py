"""What a student has: the newest verdict on each cell of the submission that counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from ...hub.schemas.grading import CellScoreOut, GradeOut
from ..model.records import CellScore, Feedback, Member, Submission, SubmissionVerdict
from .reader import GradebookEntry, GradebookPage

BY_HAND = "by hand"
"""The word of a cell to which a person gave its points."""
_FIELDS = tuple(field.name for field in fields(CellScore))
"""A class has thousands of cells: ``asdict`` would copy each value of each, and ask for these."""


def grades(
    member: Member,
    sent: Submission,
    verdicts: Iterable[SubmissionVerdict],
    penalty: float,
    *,
    given: Feedback | None = None,
    page: GradebookPage | None = None,
) -> GradeOut:
    """``verdicts``: of all runs, those of later runs after those of earlier ones.

    ``page``: what people gave them in the gradebook, which counts instead.
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
        cells=cells,
        notes=list(last.notes) if last else [],
        why_not=last.why_not if last else "Not graded yet.",
        feedback_at=given.released_at if given else None,
    )


def newest_cells(verdicts: Iterable[SubmissionVerdict]) -> list[CellScore]:
    """Of the verdicts on one submission; a cell that was graded again has the later score."""
    cells: dict[tuple[str, str], CellScore] = {}
    for verdict in verdicts:
        cells |= {(cell.notebook, cell.cell): cell for cell in verdict.cells}
    return list(cells.values())


def with_entry(cell: CellScore, entry: GradebookEntry | None) -> CellScoreOut:
    """A cell as it counts: points that a person gave are in place of the test's."""
    said = {name: getattr(cell, name) for name in _FIELDS}
    if entry is not None:
        said |= {"review": entry.waits, "comment": entry.comment, "by_hand": entry.by_hand}
        if entry.by_hand:
            said["score"] = entry.score
        if entry.given is not None:
            said |= {"word": BY_HAND, "sentence": "A person gave these points."}
    return CellScoreOut(**said)
