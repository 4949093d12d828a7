"""What a student has: the newest verdict on each cell of the submission that counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from ..hub.wire.grading import CellScoreOut, GradeOut
from .model import CellScore, Member, Submission, Verdict


def grades(
    member: Member, sent: Submission, verdicts: Iterable[Verdict], penalty: float
) -> GradeOut:
    """``verdicts``: of all runs, those of later runs after those of earlier ones."""
    own = [each for each in verdicts if each.submission == sent.id]
    cells = newest_cells(own)
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
        cells=[CellScoreOut(**asdict(cell)) for cell in cells],
        notes=list(last.notes) if last else [],
        why_not=last.why_not if last else "Not graded yet.",
    )


def newest_cells(verdicts: Iterable[Verdict]) -> list[CellScore]:
    """Of the verdicts on one submission; a cell that was graded again has the later score."""
    cells: dict[tuple[str, str], CellScore] = {}
    for verdict in verdicts:
        cells |= {(cell.notebook, cell.cell): cell for cell in verdict.cells}
    return list(cells.values())
