"""A class whose last answer a person grades, with its gradebook and graded notebooks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import nbformat

from carrel.courses.files.bundle import FileBundle
from carrel.courses.files.transfer import store_bundle
from carrel.courses.gradebook.gradebook import CourseGradebook
from carrel.courses.grading.submission_grader import NotebookResult, SubmissionResult
from carrel.courses.grading.verdict import CellVerdict, Word
from carrel.courses.model.records import CellScore, NewSubmission, SubmissionVerdict
from carrel.courses.releases.student_version import prepare
from carrel.courses.services import CourseServices
from carrel.hub.records.identity import Identity
from carrel.hub.schemas.courses import ReleaseIn
from carrel.hub.schemas.grading import GradeIn

from .notebook_samples import SOURCE, with_essay

SUBMITTED_AT = 1_800_000_000.0


def made_gradebook(folder: Path, students: Sequence[str]) -> Path:
    """The folder of cs101 after grading: slow to make, so that tests copy it."""
    with closing(CourseGradebook(folder, "cs101")) as book:
        book.save_release(prepare("ps1", {"ps1.ipynb": with_essay(SOURCE)}), due=None)
        for person in students:
            at = datetime.fromtimestamp(SUBMITTED_AT, UTC)
            book.record("ps1", _result(person), submitted_at=at)
    return folder


def release(services: CourseServices, who: Identity) -> None:
    """Release ps1 without nbgrader."""
    bundle = FileBundle.of([("ps1.ipynb", with_essay(SOURCE))])
    services.assignments.release(who, "cs101", "ps1", ReleaseIn(), stripped=bundle)


def grade_class(services: CourseServices, who: Identity, students: Sequence[str]) -> None:
    """The submissions and the verdicts that belong to ``made_gradebook``."""
    store = services.access.store
    for person in students:
        bundle = FileBundle.of([("ps1.ipynb", _answered(person))])
        store.submit(
            NewSubmission(
                course="cs101",
                assignment="ps1",
                person=person,
                at=SUBMITTED_AT,
                files=store_bundle(services.submissions.blobs, bundle),
            )
        )
    run = services.grading.start(who, "cs101", "ps1", GradeIn()).request
    for sent in store.submissions("cs101", "ps1"):
        cells = tuple(
            CellScore(
                notebook=each.notebook,
                cell=each.grade_id,
                word=str(each.word),
                sentence=each.sentence,
                score=each.score,
                max_score=each.max_score,
                review=each.review,
            )
            for each in _result(sent.person).notebooks[0].verdicts
        )
        at = services.access.context.clock()
        store.add_verdict(
            SubmissionVerdict(request=run, submission=sent.id, at=at, seconds=0.5, cells=cells)
        )


def _answered(person: str) -> bytes:
    notebook = json.loads(with_essay(SOURCE))
    notebook["cells"][-1]["source"] = f"Because {person} says so.<script>stolen = 1</script>"
    return json.dumps(notebook).encode()


def _result(person: str) -> SubmissionResult:
    node = nbformat.reads(_answered(person).decode(), as_version=4)  # type: ignore[no-untyped-call]
    for cell in node.cells:
        cell.metadata.nbgrader.checksum = "of the release"
    verdicts = (
        CellVerdict(
            notebook="ps1",
            grade_id="test-answer",
            word=Word.PASSED,
            sentence="All checks of this test passed.",
            score=2.0,
            max_score=2.0,
        ),
        CellVerdict(
            notebook="ps1",
            grade_id="essay",
            word=Word.NEEDS_A_PERSON,
            sentence="A person grades this.",
            score=None,
            max_score=3.0,
            review=True,
        ),
    )
    notebook = NotebookResult(name="ps1", verdicts=verdicts, node=node)
    return SubmissionResult(student=person, seconds=0.5, notebooks=(notebook,))
