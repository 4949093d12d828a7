"""A batch is scored in the grading sandbox, and what ends the sandbox costs no other its score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from carrel.courses.leaderboards.worker import batches, program_files, scored
from carrel.courses.sandbox.interface import (
    CellRun,
    CellStatus,
    CellStep,
    SandboxEnd,
    SandboxEngine,
    SandboxLimits,
    StopReason,
)
from carrel.hub.schemas.coursework.leaderboards import LeaderboardOrderOut, WeightsRefOut

from ... import torch_packages
from ...source_tree import ROOT, loaded_with, modules
from .weights_samples import PERFECT, TEACHERS, linear


def order(*names: str) -> LeaderboardOrderOut:
    return LeaderboardOrderOut(
        course="cs101",
        assignment="ps1",
        image="",
        files=[],
        metric="accuracy",
        public_percent=50,
        seed=7,
        seconds=60,
        entries=[WeightsRefOut(entry=name, sha256="", size=1) for name in names],
    )


@dataclass
class FragileSandbox:
    """Ends where one of its files of weights is ``bad``; else all have the same scores."""

    names: list[str]
    text: str = ""

    def run(self, steps: list[CellStep]) -> Iterator[CellRun]:
        (step,) = steps
        if "bad" in self.names:
            yield CellRun(cell_id=step.cell_id, status=CellStatus.KILLED)
            return
        score = '{"public": 0.5, "private": 0.25, "problem": ""}'
        scores = ", ".join(f'"{name}": {score}' for name in self.names)
        text = self.text or f'{{"scores": {{{scores}}}}}'
        printed = {"output_type": "stream", "name": "stdout", "text": f"hello\n{text}\n"}
        yield CellRun(cell_id=step.cell_id, status=CellStatus.OK, outputs=(printed,))

    def close(self) -> SandboxEnd:
        return SandboxEnd(cause=StopReason.MEMORY, sentence="It used too much memory.")


@dataclass
class FragileEngine:
    text: str = ""
    opened: list[list[str]] = field(default_factory=list)

    def open(self, limits: SandboxLimits, files: Mapping[str, bytes]) -> FragileSandbox:
        names = [name.removeprefix("weights/") for name in files if name.startswith("weights/")]
        self.opened.append(names)
        return FragileSandbox(names, self.text)


def test_a_file_that_ends_the_sandbox_costs_no_other_its_score() -> None:
    engine = FragileEngine()
    result = scored(engine, order("a", "b", "bad", "c"), teachers={}, weights=lambda _: b"")
    assert [(each.entry, each.public, each.fault) for each in result.scores] == [
        ("a", 0.5, False),
        ("b", 0.5, False),
        ("bad", None, True),
        ("c", 0.5, False),
    ]
    assert result.scores[2].problem == "It used too much memory."
    assert [len(names) for names in engine.opened] == [4, 2, 2, 1, 1]


def test_a_failure_of_the_teachers_file_is_told_once_and_blames_no_student() -> None:
    engine = FragileEngine('{"failure": "leaderboard.py: OSError: hidden.pt"}')
    result = scored(engine, order("a", "b"), teachers={}, weights=lambda _: b"")
    assert result.failure == "leaderboard.py: OSError: hidden.pt"
    assert {each.problem for each in result.scores} == {
        "The files of the leaderboard failed, which your teacher has to correct."
    }
    assert all(each.fault for each in result.scores)
    assert len(engine.opened) == 1


def test_batches_have_a_limit() -> None:
    entries = [WeightsRefOut(entry=str(size), sha256="", size=size) for size in (3, 3, 9, 1, 1)]
    found = [[each.entry for each in batch] for batch in batches(entries, 6)]
    assert found == [["3", "3"], ["9"], ["1", "1"]]


def test_the_program_needs_nothing_else_of_carrel() -> None:
    needed = {
        modules()[module].relative_to(ROOT).as_posix()
        for begin in ("program", "scores")
        for module in loaded_with(f"extensions.leaderboard.{begin}")
    }
    assert {f"carrel/{path}" for path in needed} <= program_files().keys()


@pytest.mark.slow  # PyTorch is imported in the sandbox
def test_weights_are_scored_in_the_sandbox(sandboxes: SandboxEngine) -> None:
    torch, _ = torch_packages.load()
    where = Path(torch.__file__).parents[1]
    teachers = f"import sys\nsys.path.append({str(where)!r})\n".encode() + TEACHERS
    contents = {"good": linear(*PERFECT), "bad": linear(*PERFECT, name="other")}
    result = scored(
        sandboxes,
        order(*contents),
        teachers={"leaderboard.py": teachers},
        weights=lambda entry: contents[entry.entry],
    )
    assert result.failure == ""
    good, bad = result.scores
    assert (good.public, good.private) == (1.0, 1.0)
    assert bad.problem.startswith("The weights lack weight.")
