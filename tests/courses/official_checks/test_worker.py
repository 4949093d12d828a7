"""The hidden tests run in the sandbox, and nothing of them leaves the worker."""

from __future__ import annotations

import json

from carrel.courses.grading_runs.worker import GradingTools
from carrel.courses.official_checks.worker import official_verdict
from carrel.courses.releases.student_version import prepare
from carrel.courses.sandbox.interface import SandboxEngine, SandboxLimits
from carrel.hub.schemas.coursework.official_checks import OfficialVerdictOut

from ..notebook_samples import SOURCE

_THIEF = """
def answer():
    import sys
    frame, found = sys._getframe(), []
    while frame:
        found.append(repr(dict(frame.f_globals).get("In", "")) + repr(frame.f_code.co_consts))
        frame = frame.f_back
    print("".join(found))
    sys.stderr.write("".join(found))
    open("stolen.txt", "w").write("".join(found))
    raise ValueError("".join(found))
"""


def verdict(sandboxes: SandboxEngine, source: str) -> OfficialVerdictOut:
    teachers = {"ps1.ipynb": SOURCE}
    prepared = prepare("ps1", teachers)
    tools = GradingTools(
        source=teachers,
        prepared=prepared,
        engine=sandboxes,
        limits=SandboxLimits(),
        key=prepared.key,
    )
    read = json.loads(prepared.files["ps1.ipynb"])
    read["cells"][0]["source"] = source
    return official_verdict(tools, {"ps1.ipynb": json.dumps(read).encode()})


def test_the_hidden_part_of_a_test_decides(sandboxes: SandboxEngine) -> None:
    right = verdict(sandboxes, "def answer():\n    return 42")
    assert (right.passed, right.points, right.max_points) == (True, 2.0, 2.0)
    visible = verdict(sandboxes, "def answer():\n    return 41")
    assert (visible.passed, visible.points) == (False, 0.0)
    assert [(each.cell, each.passed) for each in visible.cells] == [("test-answer", False)]


def test_code_that_prints_and_raises_the_test_changes_only_the_verdict(
    sandboxes: SandboxEngine,
) -> None:
    stolen = verdict(sandboxes, _THIEF)
    assert stolen.model_dump() == {
        "passed": False,
        "points": 0.0,
        "max_points": 2.0,
        "cells": [{"notebook": "ps1", "cell": "test-answer", "passed": False}],
    }
