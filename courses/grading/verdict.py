"""Write the verdict on a cell: a word, the points, and a sentence for its student.

No sentence reveals a hidden test. The text of an exception is shown only if the test is visible, or
if the teacher wrote the text as a literal. A visible assertion without a text is shown itself.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from nbconvert.filters import strip_ansi
from nbformat import NotebookNode
from nbgrader.utils import determine_grade

from ..notebooks.python_code import parse
from ..sandbox.interface import CellRun, CellStatus, StopReason
from .answer_key import KeyCell

_TEXT_SHOWN = 500
_ARROW = re.compile(r"^-+>\s*\d+ ?(.*)$", re.MULTILINE)
"""IPython's mark of the line that raised an exception."""


class Word(StrEnum):
    PASSED = "passed"
    PARTLY = "partly"
    FAILED = "failed"
    NOT_RUN = "not run"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"
    STOPPED = "stopped"
    TAMPERED = "tampered"
    MISSING = "missing"
    NO_ANSWER = "no answer"
    NEEDS_A_PERSON = "needs a person"


@dataclass(frozen=True, slots=True, kw_only=True)
class CellVerdict:
    """Attributes:
    score: None where a person grades it.
    review: a person should review it, whatever the score.
    apart: the test ran isolated from the student's kernel.
    """

    notebook: str
    grade_id: str
    word: Word
    sentence: str
    score: float | None
    max_score: float
    review: bool = False
    apart: bool = False
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TestOutcome:
    """The word, sentence and points of one cell."""

    word: Word
    sentence: str
    score: float | None
    review: bool = False


_STOPPED: Mapping[StopReason, tuple[Word, str]] = {
    StopReason.MEMORY: (
        Word.OUT_OF_MEMORY,
        "Your code took more memory than a submission may use.",
    ),
    StopReason.TIME: (Word.TIMED_OUT, "Your code took longer than a submission may run."),
    StopReason.PROCESSES: (Word.STOPPED, "Your code started more processes than it may."),
    StopReason.OUTPUT: (Word.STOPPED, "Your code printed more than a submission may."),
    StopReason.DISK: (Word.STOPPED, "Your code wrote more to files than a submission may."),
    StopReason.DIED: (Word.STOPPED, "Your code ended the kernel, so the test could not finish."),
}
"""The word and sentence for each limit that was reached."""


def of_test(cell: NotebookNode, key: KeyCell, run: CellRun) -> TestOutcome:
    """The outcome of a test, from the outputs in ``cell`` by nbgrader's rules if it was run."""
    if run.tampered:
        what = ", ".join(run.tampered)
        return TestOutcome(
            word=Word.TAMPERED,
            sentence=f"Your code changed {what}, which tests rely on: a person looks at it.",
            score=0.0,
            review=True,
        )
    stopped = of_stop(run)
    if stopped is not None:
        return stopped
    if run.status is CellStatus.ERROR:  # nbgrader would count a value that was shown before it
        return TestOutcome(word=Word.FAILED, sentence=_why(cell.outputs, key), score=0.0)
    shown = [output for output in cell.outputs if output.output_type == "execute_result"]
    if len(shown) > 1:
        sentence = "More than one result was shown as the score of this test."
        return TestOutcome(word=Word.TAMPERED, sentence=sentence, score=0.0, review=True)
    try:
        score, most = determine_grade(cell)
    except (ValueError, KeyError):  # nbgrader would fail for the whole submission
        sentence = "The test gave points that this cell cannot have: a person looks at it."
        return TestOutcome(word=Word.NEEDS_A_PERSON, sentence=sentence, score=0.0, review=True)
    if score >= most:
        return TestOutcome(
            word=Word.PASSED, sentence="All checks of this test passed.", score=score
        )
    if score > 0:
        sentence = f"This test gave {score:g} of {most:g} points."
        return TestOutcome(word=Word.PARTLY, sentence=sentence, score=score)
    return TestOutcome(word=Word.FAILED, sentence=_why(cell.outputs, key), score=0.0)


def of_stop(run: CellRun) -> TestOutcome | None:
    """The outcome of a test that did not complete; None for one that did."""
    if run.status is CellStatus.NOT_RUN:
        sentence = "This test was not run, because the kernel had ended before it."
        return TestOutcome(word=Word.NOT_RUN, sentence=sentence, score=0.0)
    if run.status is CellStatus.TIMEOUT:
        sentence = "The test took longer than it may: look for a loop that does not end."
        return TestOutcome(word=Word.TIMED_OUT, sentence=sentence, score=0.0)
    if run.status is CellStatus.KILLED:
        cause = StopReason.DIED if run.cause is StopReason.OK else run.cause
        word, sentence = _STOPPED[cause]
        return TestOutcome(word=word, sentence=sentence, score=0.0)
    return None


def of_answer(cell: NotebookNode, *, is_task: bool) -> TestOutcome:
    """The outcome of a cell that a person grades."""
    if not is_task and determine_grade(cell)[0] == 0:
        sentence = "You left this answer as it was released."
        return TestOutcome(word=Word.NO_ANSWER, sentence=sentence, score=0.0)
    sentence = "A person grades this."
    return TestOutcome(word=Word.NEEDS_A_PERSON, sentence=sentence, score=None, review=True)


def of_missing(*, is_test: bool) -> TestOutcome:
    """The outcome of a deleted cell: no points, and review by a person, as in nbgrader."""
    what = "The test" if is_test else "The place for this answer"
    sentence = f"{what} was deleted from your notebook, so there are no points for it."
    return TestOutcome(word=Word.MISSING, sentence=sentence, score=None, review=True)


def of_stopped_cell(number: int, run: CellRun) -> str:
    """A note on a cell of the student that was stopped; empty for one that was not."""
    if run.status is CellStatus.TIMEOUT:
        return f"Cell {number} was stopped after {run.seconds:.0f} s."
    if run.status is CellStatus.KILLED:
        cause = StopReason.DIED if run.cause is StopReason.OK else run.cause
        return f"Cell {number} ended the kernel. {_STOPPED[cause][1]}"
    return ""


def _why(outputs: Iterable[NotebookNode], key: KeyCell) -> str:
    for output in outputs:
        if output.output_type == "error":
            name, text = output.get("ename", ""), output.get("evalue", "")
            if name == "AssertionError" and not text:
                text = _failed_line(output.get("traceback", []), key)
            return _said(name, text, key)
    return "Something was written to the error stream, which nbgrader counts as an error."


def _failed_line(traceback: Iterable[str], key: KeyCell) -> str:
    """The line of a visible test that failed; empty for a test with a hidden part.

    Only lines of the test are shown: student code can forge a traceback.
    """
    if key.has_hidden_part:
        return ""
    own = {line.strip() for line in key.source.splitlines()}
    marked = _ARROW.findall(strip_ansi("\n".join(traceback)))  # type: ignore[no-untyped-call]
    return next((line.strip() for line in marked if line.strip() in own), "")


def _said(name: str, text: str, key: KeyCell) -> str:
    shown = text if not key.has_hidden_part or text in _literals(key.source) else ""
    shown = shown.strip()[:_TEXT_SHOWN]
    if name == "AssertionError":
        return f"A check failed: {shown}" if shown else "A check of this test failed."
    if name == "NotImplementedError":
        return "The code that this test needs is not written yet."
    kind = name[:80] if name.isidentifier() else "an error"
    return f"The test ended with {kind}: {shown}" if shown else f"The test ended with {kind}."


def _literals(source: str) -> frozenset[str]:
    """The literal messages in a test, such as those of its assertions."""
    tree = parse(source)
    if tree is None:
        return frozenset()
    messages = [
        node.msg if isinstance(node, ast.Assert) else node.exc
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert | ast.Raise)
    ]
    return frozenset(
        part.value
        for message in messages
        if message is not None
        for part in (message, *getattr(message, "args", ()))
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    )
