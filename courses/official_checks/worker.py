"""Run the hidden tests of one official check: the process that runs under its lease.

Run as ``python -m carrel.courses.official_checks.worker``.

It works as the grading worker, in the same sandboxes. Its result has a verdict and points alone:
sentences, outputs and tracebacks of tests do not leave this process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from ...hub.config.state_folder import StateFolder
from ...hub.files.local import INPUT
from ...hub.files.safe_fs import write_into
from ...hub.schemas.coursework.official_checks import (
    OFFICIAL_RESULT,
    OfficialCellOut,
    OfficialOrderOut,
    OfficialVerdictOut,
)
from ..grading.submission_grader import SubmissionGrader
from ..grading.verdict import Word
from ..grading_runs.worker import GradingTools, grading_tools, run
from ..workspace import folder


def main() -> int:
    return run(check_officially)


def check_officially() -> None:
    """Run the check of this attempt. Raises CarrelError."""
    attempt = Path(os.environ["CARREL_OUTPUT_DIR"]).parent
    state = StateFolder.at(os.environ["CARREL_STATE"])
    given = OfficialOrderOut.model_validate_json((attempt.parent / INPUT).read_bytes())
    with grading_tools(state, given.order) as tools:
        verdict = official_verdict(tools, folder.contents(given.files))
    write_into(attempt, OFFICIAL_RESULT, verdict.model_dump_json())


def official_verdict(tools: GradingTools, files: Mapping[str, bytes]) -> OfficialVerdictOut:
    """Grade the files by all tests. Points are rounded to tenths.

    A test that runs in the student's kernel can be made to give any number of points, whose digits
    could otherwise tell what the test has in its variables.
    """
    grader = SubmissionGrader(
        tools.engine, tools.key, limits=tools.limits, files=tools.prepared.files
    )
    try:
        result = grader.grade("the student", files)
    finally:
        grader.close()
    tests = {(each.name, cell.grade_id) for each in tools.key.notebooks for cell in each.tests}
    counted = [each for each in result.verdicts if (each.notebook, each.grade_id) in tests]
    cells = [
        OfficialCellOut(notebook=each.notebook, cell=each.grade_id, passed=each.word is Word.PASSED)
        for each in counted
    ]
    most = sum(each.max_score for each in counted)
    points = sum(min(max(each.score or 0.0, 0.0), each.max_score) for each in counted)
    return OfficialVerdictOut(
        passed=all(cell.passed for cell in cells),
        points=round(points, 1),
        max_points=most,
        cells=cells,
    )


if __name__ == "__main__":
    sys.exit(main())
