"""The table of grades as CSV: what is not graded is empty, not zero."""

from __future__ import annotations

from carrel.courses.gradebook.csv_export import csv_text
from carrel.hub.schemas.courses import MemberOut
from carrel.hub.schemas.grading import GradeOut, GradesOut


def test_what_is_not_graded_has_empty_points() -> None:
    graded = GradeOut(person="ada", submission=1, number=1, graded_at=5.0, score=0, max_score=3)
    waiting = GradeOut(person="ben", submission=2, number=1, why_not="Not graded yet.")
    broken = GradeOut(person="eve", submission=3, number=1, graded_at=5.0, why_not="Unreadable.")
    found = GradesOut(course="cs101", assignment="ps1", grades=[graded, waiting, broken])
    rows = csv_text(found).splitlines()
    assert rows[1:] == ["ada,,,0.0,3.0,0.0", "ben,,,,,0.0", "eve,,,,,0.0"]


def test_students_without_a_submission_have_a_row() -> None:
    absent = MemberOut(person="zoe", full_name="=Zoe", section="blue", role="student")
    found = GradesOut(course="cs101", assignment="ps1", grades=[], no_submission=[absent])
    assert csv_text(found).splitlines()[1:] == ["zoe,'=Zoe,blue,,,"]
