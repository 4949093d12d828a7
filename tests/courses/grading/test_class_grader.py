"""A class is graded in parallel, safe to repeat, and no submission stops the others."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from carrel.courses.grading.class_grader import PATIENCE, Terms, grade_class
from carrel.courses.grading.verdict import Word
from carrel.courses.releases.solution_check import ReleaseCheck
from carrel.courses.sandbox.interface import Sandbox, SandboxEngine, SandboxLimits
from carrel.hub.errors import Unavailable

from . import cheats
from .bench import MemoryBench

LOOPS = cheats.submission("def double(n):\n    while True:\n        pass")
RIGHT = cheats.OTHERS["honest"]
BAD: Mapping[str, tuple[Mapping[str, bytes], Word]] = {
    "ends": (
        cheats.submission("import os\ndef double(n):\n    os._exit(0)"),
        Word.STOPPED,
    ),
    "ends early": (cheats.submission("import os\nos._exit(0)"), Word.NOT_RUN),
    "exits": (cheats.submission("import sys\ndef double(n):\n    sys.exit(0)"), Word.FAILED),
    "asks": (cheats.submission("def double(n):\n    return int(input())"), Word.FAILED),
    "no notebook": ({"notes.txt": b"sorry"}, Word.MISSING),
    "not a notebook": ({"secret.ipynb": b"\xff\x00"}, Word.NOT_RUN),
    "another shape": ({"secret.ipynb": b'{"nbformat": 4, "cells": [3]}'}, Word.NOT_RUN),
    "deep": ({"secret.ipynb": b"[" * 100_000}, Word.NOT_RUN),
}
"""What is handed in, and the word of its first test."""


def test_bad_submissions_get_verdicts_and_others_get_their_points(
    sandboxes: SandboxEngine, secret_check: ReleaseCheck
) -> None:
    submissions = {name: files for name, (files, _) in BAD.items()}
    bench = MemoryBench({"first": RIGHT, **submissions, "last": RIGHT})
    last = grade_class(sandboxes, secret_check.key, bench, Terms(parallel=2))
    assert last.done == last.total == len(BAD) + 2
    assert bench.failures == {}
    words = {name: result.verdicts[0].word for name, result in bench.results.items()}
    expected = {name: word for name, (_, word) in BAD.items()}
    assert words == {"first": Word.PASSED, **expected, "last": Word.PASSED}
    sentences = [one.sentence for result in bench.results.values() for one in result.verdicts]
    assert all(sentences)


def test_an_endless_loop_is_reported(sandboxes: SandboxEngine, secret_check: ReleaseCheck) -> None:
    bench = MemoryBench({"loops": LOOPS})
    limits = SandboxLimits(cell_seconds=1, test_seconds=1)
    terms = Terms(limits=limits, only=frozenset({"test_double"}))
    grade_class(sandboxes, secret_check.key, bench, terms)
    (notebook,) = bench.results["loops"].notebooks
    assert [one.word for one in notebook.verdicts] == [Word.TIMED_OUT]
    assert "look for a loop" in notebook.verdicts[0].sentence
    assert notebook.notes[0].startswith("Cell 2 was stopped after ")


def test_a_submission_that_ends_the_isolated_tests_affects_only_itself(
    sandboxes: SandboxEngine, secret_check: ReleaseCheck
) -> None:
    loud = "def double(n):\n    print('x' * (n != 1) * (1 << 20))\n    return 2 * n"
    bench = MemoryBench({"loud": cheats.submission(loud), "student1": RIGHT})
    terms = Terms(limits=SandboxLimits(output_bytes=1 << 20), only=frozenset({"test_double"}))
    grade_class(sandboxes, secret_check.key, bench, terms)
    (loud_verdict,), (verdict,) = (bench.results[name].verdicts for name in bench.results)
    assert (loud_verdict.word, loud_verdict.score) == (Word.STOPPED, 0.0)
    assert "printed more" in loud_verdict.sentence
    assert verdict.word is Word.PASSED


def test_progress_is_reported_at_the_start_and_after_each_submission(
    sandboxes: SandboxEngine, secret_check: ReleaseCheck
) -> None:
    bench = MemoryBench({f"student{number}": RIGHT for number in range(4)})
    ticks = iter(range(100))
    grade_class(
        sandboxes,
        secret_check.key,
        bench,
        Terms(),
        clock=lambda: float(next(ticks)),
    )
    assert [one.done for one in bench.told] == [0, 1, 2, 3, 4]
    assert [one.seconds for one in bench.told] == [1, 2, 3, 4, 5]


def test_an_interrupted_run_continues_with_submissions_without_verdict(
    sandboxes: SandboxEngine, secret_check: ReleaseCheck
) -> None:
    bench = MemoryBench({f"student{number}": RIGHT for number in range(6)})
    bench.stop_after = 1
    grade_class(sandboxes, secret_check.key, bench, Terms())
    before = dict(bench.results)
    assert 1 <= len(before) < 6
    bench.stop_after = None
    grade_class(sandboxes, secret_check.key, bench, Terms())
    assert len(bench.results) == 6
    assert all(bench.results[student] is result for student, result in before.items())


def test_one_question_is_graded_again_for_all(
    sandboxes: SandboxEngine, secret_check: ReleaseCheck
) -> None:
    bench = MemoryBench({"student1": RIGHT, "student2": cheats.OTHERS["wrong"]})
    grade_class(sandboxes, secret_check.key, bench, Terms(only=frozenset({"test_all"})))
    assert bench.scores() == {"student1": {"test_all": 2.0}, "student2": {"test_all": 0.0}}


class Failing:
    """An engine that fails so many times, and then works."""

    def __init__(self, engine: SandboxEngine, times: int) -> None:
        self._engine, self._left = engine, times

    def open(self, limits: SandboxLimits, files: Mapping[str, bytes] | None = None) -> Sandbox:
        if self._left > 0:
            self._left -= 1
            raise Unavailable("The engine does not answer.")
        return self._engine.open(limits, files)

    def close(self) -> None: ...


def test_an_engine_that_fails_once_costs_no_points(
    sandboxes: SandboxEngine, secret_check: ReleaseCheck
) -> None:
    bench = MemoryBench({"student1": RIGHT})
    grade_class(Failing(sandboxes, 1), secret_check.key, bench, Terms())
    assert bench.scores()["student1"]["test_double"] == 3.0


def test_an_engine_that_fails_repeatedly_ends_the_run(
    sandboxes: SandboxEngine, secret_check: ReleaseCheck
) -> None:
    bench = MemoryBench({f"student{number}": RIGHT for number in range(9)})
    with pytest.raises(Unavailable):
        grade_class(Failing(sandboxes, 1000), secret_check.key, bench, Terms())
    assert len(bench.failures) == PATIENCE
    assert bench.results == {}
