"""The sentence on a failed test says what a student may know."""

from __future__ import annotations

import pytest
from nbformat.v4 import new_code_cell, new_output

from carrel.courses.grading.answer_key import KeyCell
from carrel.courses.grading.verdict import of_test
from carrel.courses.sandbox.interface import CellRun, CellStatus

VISIBLE = "x = double(3)\nassert x == 6"
HIDDEN = f"{VISIBLE}\nassert double(4) == 8"
MARK = "\x1b[32m----> \x1b[0m\x1b[32m2\x1b[0m \x1b[38;5;28massert\x1b[0m x == \x1b[32m6\x1b[0m"


def sentence(source: str, traceback: list[str], *, text: str = "") -> str:
    error = new_output("error", ename="AssertionError", evalue=text, traceback=traceback)  # type: ignore[no-untyped-call]
    cell = new_code_cell(source, outputs=[error])  # type: ignore[no-untyped-call]
    cell.metadata["nbgrader"] = {"grade_id": "t", "grade": True, "solution": False, "points": 1}
    key = KeyCell(
        grade_id="t", cell_type="code", source=source, visible=VISIBLE, grade=True, points=1.0
    )
    run = CellRun(cell_id="t", status=CellStatus.ERROR)
    return of_test(cell, key, run).sentence


@pytest.mark.parametrize(
    ("source", "traceback", "text", "expected"),
    [
        (VISIBLE, [MARK], "double 3", "A check failed: double 3"),
        (VISIBLE, ["AssertionError", MARK], "", "A check failed: assert x == 6"),
        (VISIBLE, ["----> 1 assert secret == 1"], "", "A check of this test failed."),
        (VISIBLE, [], "", "A check of this test failed."),
        (HIDDEN, ["----> 3 assert double(4) == 8"], "", "A check of this test failed."),
    ],
    ids=["text", "line", "line of other code", "no line", "hidden part"],
)
def test_a_failed_assertion(source: str, traceback: list[str], text: str, expected: str) -> None:
    assert sentence(source, traceback, text=text) == expected
