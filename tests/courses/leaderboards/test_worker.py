"""A batch is scored in the grading sandbox, and what ends the sandbox costs no other its score."""

from __future__ import annotations

import json
from ast import literal_eval
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from carrel.courses.leaderboards.evaluation import request_seconds
from carrel.courses.leaderboards.worker import batches, earlier_scores, program_files, scored
from carrel.courses.model.leaderboards import SCORED_AT_ONCE
from carrel.courses.sandbox.interface import (
    CellRun,
    CellStatus,
    CellStep,
    SandboxEnd,
    SandboxEngine,
    SandboxLimits,
    StopReason,
)
from carrel.hub.errors import NotFound
from carrel.hub.schemas.coursework.leaderboards import (
    LEADERBOARD_RESULT,
    EntryScoreOut,
    LeaderboardOrderOut,
    LeaderboardResultOut,
    WeightsRefOut,
)

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
    """Ends where one of the files of a step is ``bad``; else all have the same scores."""

    prepared: str = '{"scores": {}}'
    gone: bool = False

    def run(self, steps: Iterable[CellStep]) -> Iterator[CellRun]:
        for step in steps:
            _, _, names = step.source.rstrip(")").partition("score(")
            group = literal_eval(names) if names else []
            if self.gone:
                yield CellRun(cell_id=step.cell_id, status=CellStatus.NOT_RUN)
            elif "bad" in group:
                self.gone = True
                yield CellRun(cell_id=step.cell_id, status=CellStatus.KILLED)
            elif "slow" in group:
                yield CellRun(cell_id=step.cell_id, status=CellStatus.TIMEOUT)
            else:
                score = {"public": 0.5, "private": 0.25, "problem": ""}
                text = json.dumps({"scores": dict.fromkeys(group, score)})
                printed = f"hello\n{text if names else self.prepared}\nbye\n"
                output = {"output_type": "stream", "name": "stdout", "text": printed}
                yield CellRun(cell_id=step.cell_id, status=CellStatus.OK, outputs=(output,))

    def close(self) -> SandboxEnd:
        return SandboxEnd(cause=StopReason.MEMORY, sentence="It used too much memory.")


@dataclass
class FragileEngine:
    prepared: str = '{"scores": {}}'
    opened: list[list[str]] = field(default_factory=list)

    def open(self, limits: SandboxLimits, files: Mapping[str, bytes]) -> FragileSandbox:
        names = [name.removeprefix("weights/") for name in files if name.startswith("weights/")]
        self.opened.append(names)
        return FragileSandbox(self.prepared)


def run(
    engine: SandboxEngine, *names: str, known: Sequence[EntryScoreOut] = ()
) -> tuple[LeaderboardResultOut, list[LeaderboardResultOut]]:
    """Return the result of an order, and what was stored on the way."""
    stored: list[LeaderboardResultOut] = []
    result = scored(
        engine,
        order(*names),
        teachers={},
        weights=lambda _: b"",
        known=known,
        store=stored.append,
    )
    return result, stored


def test_a_file_that_ends_the_sandbox_costs_no_other_its_score() -> None:
    engine = FragileEngine()
    result, _ = run(engine, "a", "b", "bad", "c")
    assert [(each.entry, each.public, each.fault) for each in result.scores] == [
        ("a", 0.5, False),
        ("b", 0.5, False),
        ("bad", None, True),
        ("c", 0.5, False),
    ]
    assert result.scores[2].problem == "It used too much memory."
    assert [each.entry for each in result.scores if each.stopped] == ["bad"]
    assert [len(names) for names in engine.opened] == [4, 4, 2, 1]


def test_results_are_stored_after_each_group_of_submissions() -> None:
    names = [f"w-{number}" for number in range(2 * SCORED_AT_ONCE + 1)]
    names[SCORED_AT_ONCE] = "bad"
    engine = FragileEngine()
    result, stored = run(engine, *names)
    assert len(engine.opened[0]) == len(names)
    sizes = [len(each.scores) for each in stored]
    assert sizes[:2] == [0, SCORED_AT_ONCE], "what comes after the first group is not lost"
    assert sizes[2] == SCORED_AT_ONCE + 1, "the group that was not run is not split"
    assert stored[-1] == result
    assert [each.entry for each in result.scores] == names
    assert [each.entry for each in result.scores if each.fault] == ["bad"]


def test_a_group_whose_time_is_over_is_split_before_others_run() -> None:
    engine = FragileEngine()
    result, _ = run(engine, "a", "slow", "b")
    assert [each.entry for each in result.scores if each.fault] == ["slow"]
    assert [len(names) for names in engine.opened] == [3, 3, 3]


def test_submissions_that_have_failed_before_are_scored_alone() -> None:
    entries = [
        WeightsRefOut(entry="a", sha256="", size=1),
        WeightsRefOut(entry="b", sha256="", size=1),
    ]
    slow = WeightsRefOut(entry="slow", sha256="", size=1, alone=True)
    engine = FragileEngine()
    result = scored(
        engine,
        order().model_copy(update={"entries": [*entries, slow]}),
        teachers={},
        weights=lambda _: b"",
        store=lambda _: None,
    )
    assert [(each.entry, each.fault) for each in result.scores] == [
        ("a", False),
        ("b", False),
        ("slow", True),
    ]
    assert len(engine.opened) == 1, "no group of several was too slow"


@dataclass
class SlowEngine:
    """Models need ``each`` seconds of a clock, which ends the request at its limit."""

    each: float
    limit: float
    status: CellStatus
    now: float = 0.0

    def open(self, limits: SandboxLimits, files: Mapping[str, bytes]) -> SlowSandbox:
        return SlowSandbox(engine=self, cell_seconds=limits.cell_seconds)

    def close(self) -> None:
        pass

    def wait(self, seconds: float) -> None:
        self.now += seconds
        if self.now > self.limit:
            raise TimeoutError(f"The request ended after {self.limit} s.")


@dataclass(kw_only=True)
class SlowSandbox(FragileSandbox):
    engine: SlowEngine
    cell_seconds: float

    def run(self, steps: Iterable[CellStep]) -> Iterator[CellRun]:
        for step in steps:
            _, _, names = step.source.rstrip(")").partition("score(")
            if self.gone:
                yield CellRun(cell_id=step.cell_id, status=CellStatus.NOT_RUN)
                continue
            needed = self.engine.each * (len(literal_eval(names)) if names else 1)
            self.engine.wait(min(needed, self.cell_seconds))
            if needed > self.cell_seconds:
                self.gone = self.engine.status is CellStatus.KILLED
                cause = StopReason.TIME
                yield CellRun(cell_id=step.cell_id, status=self.engine.status, cause=cause)
            else:
                yield from super().run([step])


@pytest.mark.parametrize("part", [64, 32, 16, 8])
@pytest.mark.parametrize("status", [CellStatus.TIMEOUT, CellStatus.KILLED])
def test_models_that_are_too_slow_in_groups_are_scored_within_one_request(
    part: int, status: CellStatus
) -> None:
    seconds, names = order().seconds, [f"w-{number}" for number in range(300)]
    limit = request_seconds(seconds, len(names))
    engine = SlowEngine(each=1.01 * seconds / part, limit=limit, status=status)
    result, _ = run(engine, *names)
    assert [each.public for each in result.scores] == [0.5] * len(names)
    beside = engine.now - engine.each * len(names)
    assert beside < 6 * seconds, "the time of few groups was over"


def test_the_next_attempt_evaluates_only_what_the_earlier_ones_have_not(tmp_path: Path) -> None:
    first = [
        EntryScoreOut(entry="a", public=1.0, private=1.0),
        EntryScoreOut(entry="b", problem="It used too much memory.", fault=True),
    ]
    for epoch, text in ((1, LeaderboardResultOut(scores=first).model_dump_json()), (2, '{"scor')):
        (tmp_path / str(epoch)).mkdir()
        (tmp_path / str(epoch) / LEADERBOARD_RESULT).write_text(text)
    (tmp_path / "3").mkdir()
    known = earlier_scores(tmp_path / "3")
    assert known == first[:1]
    engine = FragileEngine()
    result, stored = run(engine, "a", "b", known=known)
    assert engine.opened == [["b"]]
    assert [each.public for each in result.scores] == [1.0, 0.5]
    assert stored[0].scores == known


def test_a_failure_of_the_teachers_file_is_told_once_and_blames_no_student() -> None:
    engine = FragileEngine('{"failure": "leaderboard.py: OSError: hidden.pt"}')
    result, stored = run(engine, "a", "b")
    assert stored[-1] == result
    assert result.failure == "leaderboard.py: OSError: hidden.pt"
    assert {each.problem for each in result.scores} == {
        "The files of the leaderboard failed, which your teacher has to correct."
    }
    assert all(each.fault for each in result.scores)
    assert len(engine.opened) == 1


def test_a_sandbox_that_ends_before_the_first_submission_is_not_opened_for_each() -> None:
    engine = FragileEngine("nothing")
    result, _ = run(engine, "a", "b", "c")
    assert [each.fault for each in result.scores] == [True, True, True]
    assert not any(each.stopped for each in result.scores), "no file is to blame"
    assert len(engine.opened) == 1


def test_a_file_that_is_lost_costs_no_other_its_score() -> None:
    def weights(entry: WeightsRefOut) -> bytes:
        if entry.entry == "lost":
            raise NotFound("There is no content.")
        return b""

    stored: list[LeaderboardResultOut] = []
    result = scored(
        FragileEngine(), order("a", "lost"), teachers={}, weights=weights, store=stored.append
    )
    assert stored[-1] == result
    a, lost = result.scores
    assert (a.public, lost.fault) == (0.5, True)
    assert lost.problem == "Its file cannot be read any more."
    scored(FragileEngine(), order("lost"), teachers={}, weights=weights, store=stored.append)
    assert [each.entry for each in stored[-1].scores] == ["lost"]


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
        store=lambda _: None,
    )
    assert result.failure == ""
    good, bad = result.scores
    assert (good.public, good.private) == (1.0, 1.0)
    assert bad.problem.startswith("The weights lack weight.")
