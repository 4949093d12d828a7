"""Solutions and hand-outs run in the sandbox, and what breaks is named with its cell."""

from __future__ import annotations

import json
from typing import Any

import pytest

from carrel.courses.grading_runs.worker import GradingTools
from carrel.courses.rehearsals.worker import rehearsed
from carrel.courses.releases.student_version import prepare
from carrel.courses.sandbox.interface import SandboxEngine, SandboxLimits
from carrel.hub.schemas.coursework.rehearsals import RehearsalResultOut

from ..notebook_samples import SOURCE, assignment


@pytest.fixture
def run(sandboxes: SandboxEngine) -> Any:
    def rehearsal(notebook: bytes) -> RehearsalResultOut:
        source = {"ps1.ipynb": notebook}
        prepared = prepare("ps1", source)
        tools = GradingTools(
            source=source,
            prepared=prepared,
            engine=sandboxes,
            limits=SandboxLimits(),
            key=prepared.key,
        )
        return rehearsed(tools)

    return rehearsal


def lines(result: RehearsalResultOut) -> list[tuple[str, str, str]]:
    return [(each.part, each.cell, each.error) for each in result.findings]


def plain_cell(source: str, name: str = "plain") -> dict[str, Any]:
    return {
        "id": name,
        "cell_type": "code",
        "metadata": {},
        "source": source,
        "outputs": [],
        "execution_count": None,
    }


def test_a_good_assignment_works(run: Any) -> None:
    read = json.loads(SOURCE)
    # It needs the solution, so that only NotImplementedError follows in the hand-out.
    read["cells"].append(plain_cell("print(answer())"))
    found = run(json.dumps(read).encode())
    assert lines(found) == []
    assert (found.solution_points, found.hand_out_points, found.max_points) == (2.0, 0.0, 2.0)


def test_everything_that_breaks_is_named_once(run: Any) -> None:
    read = json.loads(
        assignment(
            ("good", "def good():", "return 1", "good() == 1", "good() == 1"),
            ("wrong", "def wrong():", "return removed_name", "wrong() == 1", "wrong() == 1"),
            ("empty", "def empty():", "return 1", "empty() == 1", "empty() == 1"),
        )
    )
    read["cells"].insert(0, plain_cell("import module_of_last_term\nx = 1"))
    stub = "# YOUR CODE HERE\nraise NotImplementedError()"
    empty = next(each for each in read["cells"] if each["id"] == "empty")
    empty["source"] = stub
    found = run(json.dumps(read).encode())
    gone = "ModuleNotFoundError: No module named 'module_of_last_term'"
    assert lines(found) == [
        ("solution", "cell 1", gone),
        ("solution", "test-wrong", "NameError: name 'removed_name' is not defined"),
        (
            "solution",
            "empty",
            "The source has no solution for this cell, only the text that students get.",
        ),
        ("solution", "test-empty", "NameError: name 'empty' is not defined"),
        ("hand-out", "cell 1", gone),
    ]
    assert (found.solution_points, found.max_points) == (2.0, 6.0)


def test_a_hand_out_with_full_points_is_a_finding(run: Any) -> None:
    read = json.loads(SOURCE)
    read["cells"][0] = plain_cell("def answer():\n    return 42")
    found = run(json.dumps(read).encode())
    assert lines(found)[-1] == (
        "hand-out",
        "",
        "It gets all 2 points of its tests without a solution.",
    )
