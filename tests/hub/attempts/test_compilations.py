"""Accelerated functions in the folder of an attempt, which the job writes."""

from __future__ import annotations

import json
from pathlib import Path

from carrel.hub.attempts.compilations import (
    LONGEST_TEXT,
    MOST_FUNCTIONS,
    MOST_LINES,
    AcceleratedFunctionReport,
    CompilationObstacle,
    read_compilations,
)
from carrel.hub.attempts.spec import COMPILATIONS


def test_the_newest_line_of_each_function_counts_and_others_are_left_out(tmp_path: Path) -> None:
    obstacle = {"place": "a.py, line 3", "source": "x\x1b[0m", "reason": "r", "rewrite": ""}
    first = {"function": "f", "place": "a.py, line 1", "outcome": "Compiled.", "obstacles": []}
    second = first | {"outcome": "Executed plainly.", "obstacles": [obstacle]}
    odd: list[object] = [
        [], 1, {"function": "g"}, first | {"outcome": 3}, first | {"obstacles": [1]},
        first | {"obstacles": {}},
    ]  # fmt: skip
    lines = [json.dumps(each) for each in (first, *odd, second)]
    (tmp_path / COMPILATIONS).write_text("\n".join([*lines, "no JSON", "["]))
    assert read_compilations(tmp_path) == (
        AcceleratedFunctionReport(
            function="f",
            place="a.py, line 1",
            outcome="Executed plainly.",
            obstacles=(
                CompilationObstacle(place="a.py, line 3", source="x [0m", reason="r", rewrite=""),
            ),
        ),
    )


def test_what_a_job_writes_is_bounded(tmp_path: Path) -> None:
    obstacle = {"place": "", "source": "y" * 1000, "reason": "", "rewrite": ""}
    lines = [
        json.dumps({"function": f"f{n}", "place": "", "outcome": "", "obstacles": [obstacle] * 100})
        for n in range(60)
    ]
    (tmp_path / COMPILATIONS).write_text("\n".join(lines[:5]))
    found = read_compilations(tmp_path)
    assert {len(each.obstacles) for each in found} == {MOST_LINES}
    assert len(found[0].obstacles[0].source) == LONGEST_TEXT
    short = [json.dumps(json.loads(line) | {"obstacles": []}) for line in lines]
    (tmp_path / COMPILATIONS).write_text("\n".join(short))
    assert len(read_compilations(tmp_path)) == MOST_FUNCTIONS


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "other"
    target.write_text('{"function": "f", "place": "", "outcome": "", "obstacles": []}')
    (tmp_path / COMPILATIONS).symlink_to(target)
    assert read_compilations(tmp_path) == ()
    assert read_compilations(tmp_path / "missing") == ()
