"""Feedback of a class: pages of nbgrader's gradebook, with the points of that moment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from nbformat import NotebookNode

from carrel.courses.feedback import page as feedback_pages
from carrel.courses.feedback.delivery import GRADE
from carrel.courses.files.course_folder import folder_of
from carrel.courses.gradebook import graded_notebook, reader
from carrel.courses.gradebook.gradebook import CourseGradebook
from carrel.courses.grading.answer_key import NotebookKey
from carrel.courses.grading.submission_grader import NotebookResult, SubmissionResult
from carrel.courses.grading.verdict import CellVerdict, Word
from carrel.courses.model.records import CellScore, Submission, SubmissionVerdict
from carrel.courses.releases import student_version
from carrel.courses.releases.student_version import prepare
from carrel.hub.errors import Conflict, NotFound, TooLarge
from carrel.hub.schemas.courses import SubmitIn
from carrel.hub.schemas.grading import GradeIn

from ...hub.doubles import STUDENT1, STUDENT2, TEACHER
from ..course_site import CourseSite, build_site, files
from ..notebook_samples import SOURCE, source

TEST = CellVerdict(
    notebook="",
    grade_id="test-answer",
    word=Word.FAILED,
    sentence="A check of this test failed.",
    score=0.0,
    max_score=2.0,
)
NOTEBOOKS = {"ps1.ipynb": SOURCE, "more.ipynb": source(7)}


@pytest.fixture
def site(tmp_path: Path) -> CourseSite:
    """cs101 with two students, and ps1 with two notebooks."""
    site = build_site(tmp_path / "site", root=tmp_path / "courses")
    site.create(students="student\nstudent1\nstudent2\n")
    site.release(files=files(NOTEBOOKS))
    for who in (STUDENT1, STUDENT2):
        given = prepare("ps1", NOTEBOOKS).files
        site.services.submissions.submit(who, "cs101", "ps1", SubmitIn(files=files(dict(given))))
    return site


def grade(site: CourseSite, *people: str, verdict: CellVerdict = TEST) -> None:
    """Write gradebook and verdicts as the grader does, without running notebooks."""
    prepared, services = prepare("ps1", NOTEBOOKS), site.services
    run = services.grading.start(TEACHER, "cs101", "ps1", GradeIn()).request
    folder = folder_of(services.grading.root, "cs101")
    assert folder is not None
    with closing(CourseGradebook(folder, "cs101")) as book:
        book.save_release(prepared, due=None)
        for person in people:
            (sent,) = services.access.store.submissions("cs101", "ps1", person)
            result = _result(prepared, person, verdict)
            when = datetime.fromtimestamp(sent.at, UTC)
            book.record("ps1", result, submitted_at=when)
            services.access.store.add_verdict(_verdict(run, sent, result))


def _result(
    prepared: student_version.Prepared, person: str, verdict: CellVerdict
) -> SubmissionResult:
    notebooks = tuple(
        NotebookResult(name=name, node=node, verdicts=(replace(verdict, notebook=name),))
        for name, node in prepared.masters.items()
    )
    return SubmissionResult(student=person, notebooks=notebooks, seconds=0.1)


def _verdict(run: str, sent: Submission, result: SubmissionResult) -> SubmissionVerdict:
    cells = tuple(
        CellScore(
            notebook=one.notebook,
            cell=one.grade_id,
            word=str(one.word),
            sentence=one.sentence,
            score=one.score,
            max_score=one.max_score,
        )
        for one in result.verdicts
    )
    return SubmissionVerdict(request=run, submission=sent.id, at=sent.at, seconds=0.1, cells=cells)


def given(site: CourseSite, person: str) -> Mapping[str, bytes]:
    """Return the feedback files of a student."""
    found = site.services.access.store.feedback("cs101", "ps1", person).values()
    refs = [file for each in found for file in each.files.files]
    return {file.name: site.services.assignments.blobs.open(file.sha256).read() for file in refs}


def test_a_class_gets_its_pages_and_shared_files_are_read_once(
    site: CourseSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    grade(site, "student1", "student2")
    done: list[str] = []
    for module, name in ((student_version, "prepare"), (reader, "copy")):
        real = getattr(module, name)

        def counted(*values: object, real: object = real, name: str = name) -> object:
            done.append(name)
            assert callable(real)
            return real(*values)

        monkeypatch.setattr(module, name, counted)
    people = ["student1", "nobody", "student2"]
    told = dict(site.services.feedback.release_to_class(TEACHER, "cs101", "ps1", people))
    assert [person for person, problem in told.items() if problem is None] == [
        "student1",
        "student2",
    ]
    assert isinstance(told["nobody"], Conflict)
    assert sorted(done) == ["copy", "prepare"]
    for person in ("student1", "student2"):
        mine = given(site, person)
        assert sorted(mine) == [GRADE, "more.html", "ps1.html"]
        assert json.loads(mine[GRADE])["max_score"] == 4.0
        assert b"A check of this test failed." in mine["ps1.html"]
        assert b"(Score: 0.0 / 2.0)" in mine["more.html"]


def test_feedback_before_grading_is_refused_with_the_command_to_grade(site: CourseSite) -> None:
    with pytest.raises(Conflict, match="has been graded") as refused:
        site.services.feedback.release(TEACHER, "cs101", "ps1", "student1")
    assert refused.value.accepted == "First: carrel course grade ps1"


def test_feedback_is_released_only_as_far_as_the_generator_is_consumed(site: CourseSite) -> None:
    grade(site, "student1", "student2")
    giving = site.services.feedback.release_to_class(
        TEACHER, "cs101", "ps1", ["student1", "student2"]
    )
    assert next(giving) == ("student1", None)
    giving.close()
    assert given(site, "student1")
    assert given(site, "student2") == {}


def test_a_preview_writes_one_page_and_releases_nothing(
    site: CourseSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    grade(site, "student1")
    made_of: list[str] = []
    real = feedback_pages.feedback_page

    def recorded(node: NotebookNode, key: NotebookKey, **more: Any) -> str:
        made_of.append(key.name)
        return real(node, key, **more)

    monkeypatch.setattr(feedback_pages, "feedback_page", recorded)
    page = site.services.feedback.preview(TEACHER, "cs101", "ps1", "student1", "more")
    assert b"(Score: 0.0 / 2.0)" in page
    assert made_of == ["more"]
    assert given(site, "student1") == {}
    with pytest.raises(NotFound, match=r"not submitted other\.ipynb"):
        site.services.feedback.preview(TEACHER, "cs101", "ps1", "student1", "other")
    with pytest.raises(Conflict):
        site.services.feedback.preview(TEACHER, "cs101", "ps1", "student2", "ps1")


def test_feedback_pages_load_no_fonts(site: CourseSite) -> None:
    grade(site, "student1")
    page = site.services.feedback.preview(TEACHER, "cs101", "ps1", "student1", "ps1")
    assert b"@font-face" not in page


def test_an_oversized_file_in_place_of_a_graded_notebook_is_refused(
    site: CourseSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    grade(site, "student1")
    monkeypatch.setattr(graded_notebook, "MAX_OUTPUT_BYTES", 100)
    with pytest.raises(TooLarge, match=r"autograded/student1/ps1/ps1\.ipynb is too large"):
        site.services.feedback.preview(TEACHER, "cs101", "ps1", "student1", "ps1")


def test_points_that_wait_for_a_person_are_released_as_provisional(site: CourseSite) -> None:
    grade(site, "student1", "student2", verdict=replace(TEST, score=None, review=True))
    done = site.services.feedback.release(TEACHER, "cs101", "ps1", "student1")
    waits = "provisional: 2 cells wait for a person's points"
    assert done.sentences == [f"student1 has feedback on ps1; the points are {waits}."]
    mine = given(site, "student1")
    assert json.loads(mine[GRADE])["provisional"] == 2
    assert b"provisional: 1 cell waits for a person" in mine["ps1.html"]
    (shown,) = site.services.overview.assignments(STUDENT1, "cs101").assignments
    assert shown.provisional == 2
