"""Export the grades of a class as a table (CSV)."""

from __future__ import annotations

import csv
import io

from ...hub.schemas.grading import GradesOut


def csv_text(found: GradesOut) -> str:
    """One row for each student and one column for each cell, named as in nbgrader.

    Points that do not exist yet are empty: a spreadsheet would count zeros.
    """
    cells = list(dict.fromkeys((c.notebook, c.cell) for each in found.grades for c in each.cells))
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    named = [f"{notebook}/{cell}" for notebook, cell in cells]
    out.writerow(["student", "name", "section", "score", "max_score", "late_penalty", *named])
    for each in found.grades:
        scores = {(c.notebook, c.cell): c.score for c in each.cells}
        graded = each.graded_at is not None and not each.why_not
        points = (each.score, each.max_score) if graded else (None, None)
        # csv writes None as an empty cell.
        out.writerow(
            [
                *map(_harmless, (each.person, each.full_name, each.section)),
                *(*points, each.penalty),
                *(scores.get(cell) for cell in cells),
            ]
        )
    return text.getvalue()


def _harmless(text: str) -> str:
    """Text that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in "=+-@\t\r" and text else text
