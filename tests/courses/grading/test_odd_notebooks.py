"""A submission that violates the schema is repaired as a job's notebook is (issue 28, item 30)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from carrel.courses.grading.sanitizer import sanitize
from carrel.courses.grading.submission_grader import SubmissionGrader
from carrel.courses.releases.student_version import prepare
from carrel.courses.sandbox.interface import SandboxEngine
from carrel.hub.attempts.notebook_format import read_notebook

from . import cheats


def odd(minor: int = 4, **more: object) -> bytes:
    """The solution, as another program would have saved it."""
    node: dict[str, Any] = json.loads(cheats.source()["secret.ipynb"])
    for cell in node["cells"]:
        del cell["outputs"]
        cell |= {"collapsed": True, "id": "the same", **more}
    return json.dumps(node | {"nbformat_minor": minor}).encode()


def test_a_submission_is_read_as_the_notebook_of_a_job() -> None:
    prepared = prepare("secret", cheats.source())
    sheet = sanitize(odd(), prepared.key.notebooks[0])
    found = read_notebook("secret.ipynb", odd())
    assert sheet.repairs == found.repairs
    assert "New ids for 4 cells" in " ".join(found.repairs)
    assert len({cell.id for cell in sheet.node.cells}) == len(sheet.node.cells)


def test_a_repaired_submission_is_graded_and_the_student_is_told(sandboxes: SandboxEngine) -> None:
    prepared = prepare("secret", cheats.source())
    grader = SubmissionGrader(sandboxes, prepared.key)
    try:
        result = grader.grade("ada", {"secret.ipynb": odd()})
    finally:
        grader.close()
    scores = {one.grade_id: one.score for one in result.verdicts if one.score}
    assert scores == pytest.approx({"test_double": 3, "test_all": 2})
    assert result.notebooks[0].notes[0].startswith("The notebook file was repaired: ")


def test_a_teacher_is_told_what_was_repaired_in_the_source() -> None:
    prepared = prepare("secret", {"secret.ipynb": odd(minor=5)})
    assert prepared.warnings[0].startswith("secret.ipynb was repaired: New ids for 4 cells")
