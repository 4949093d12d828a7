"""Run one assignment of a rehearsal: the process that runs under its lease.

Run as ``python -m carrel.courses.rehearsals.worker``.

It works as the grading worker, in the same sandboxes, and without a gradebook: no points of any
student change. Its result stays in the attempt's folder.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from ...hub.config.state_folder import StateFolder
from ...hub.errors import InvalidInput
from ...hub.files.local import INPUT
from ...hub.files.safe_fs import write_into
from ...hub.schemas.coursework.rehearsals import (
    MOST_FINDINGS,
    REHEARSAL_RESULT,
    RehearsalFindingOut,
    RehearsalResultOut,
)
from ...hub.schemas.grading import GradingOrderOut
from ..grading.submission_grader import SubmissionGrader, SubmissionResult
from ..grading_runs.worker import GradingTools, grading_tools, run
from . import findings


def main() -> int:
    return run(rehearse)


def rehearse() -> None:
    """Run the assignment of this attempt. Raises CarrelError."""
    attempt = Path(os.environ["CARREL_OUTPUT_DIR"]).parent
    state = StateFolder.at(os.environ["CARREL_STATE"])
    order = GradingOrderOut.model_validate_json((attempt.parent / INPUT).read_bytes())
    write_into(attempt, REHEARSAL_RESULT, result_of(state, order).model_dump_json())


def result_of(state: StateFolder, order: GradingOrderOut) -> RehearsalResultOut:
    """Grade the solution and the hand-out. Raises CarrelError if the sandbox fails."""
    try:
        with grading_tools(state, order) as tools:
            return rehearsed(tools)
    except InvalidInput as error:  # the source is not valid for this version of nbgrader
        whole = RehearsalFindingOut(
            part=findings.SOLUTION, notebook="", cell="", error=error.message.splitlines()[0]
        )
        return RehearsalResultOut(findings=[whole])


def rehearsed(tools: GradingTools) -> RehearsalResultOut:
    """Grade the solution and the hand-out, and compare with what is expected of each."""
    began = time.monotonic()
    prepared, key = tools.prepared, tools.key
    grader = SubmissionGrader(tools.engine, key, limits=tools.limits, files=prepared.files)

    def graded(files: Mapping[str, bytes], who: str) -> SubmissionResult:
        return grader.grade(who, files)

    try:
        solution = graded(tools.source, "the solution")
        hand_out = graded(prepared.files, "the hand-out")
    finally:
        grader.close()
    found = [
        *findings.of_solution(solution, key, tools.source),
        *findings.of_hand_out(hand_out, key),
    ]
    points, most = findings.points_of_tests(solution, key)
    return RehearsalResultOut(
        findings=found[:MOST_FINDINGS],
        solution_points=points,
        hand_out_points=findings.points_of_tests(hand_out, key)[0],
        max_points=most,
        seconds=time.monotonic() - began,
    )


if __name__ == "__main__":
    sys.exit(main())
