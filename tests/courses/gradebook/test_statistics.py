"""Statistics of a class, and the table of a whole course."""

from __future__ import annotations

from carrel.courses.gradebook.csv_export import gradebook_csv
from carrel.courses.gradebook.statistics import statistics
from carrel.hub.schemas.grading import (
    CellRateOut,
    CellScoreOut,
    CourseGradebookOut,
    DistributionOut,
    GradebookAssignmentOut,
    GradebookRowOut,
    GradebookScoreOut,
    GradeOut,
    GradesOut,
)


def grade(person: str, test: float, essay: float | None, *, why_not: str = "") -> GradeOut:
    cells = [
        CellScoreOut(notebook="ps1", cell=cell, word="", sentence="", score=score, max_score=2.0)
        for cell, score in (("test", test), ("essay", essay))
    ]
    return GradeOut(
        person=person,
        submission=1,
        number=1,
        graded_at=1.0,
        score=test + (essay or 0.0),
        max_score=4.0,
        cells=cells,
        why_not=why_not,
    )


def test_statistics_count_only_what_is_graded() -> None:
    found = GradesOut(
        course="cs101",
        assignment="ps1",
        questions=["test", "essay", "new"],
        grades=[
            grade("ada", 2.0, 2.0),
            grade("ben", 2.0, 0.0),
            grade("cleo", 0.5, None),
            grade("dora", 0.0, 0.0, why_not="The notebook cannot be read."),
        ],
    )
    made = statistics(found)
    assert made.distribution == DistributionOut(
        students=3,
        mean=6.5 / 3,
        median=2.0,
        least=0.5,
        most=4.0,
        max_score=4.0,
        bars=[0, 1, 0, 0, 0, 1, 0, 0, 0, 1],
    )
    rate = CellRateOut(notebook="ps1", cell="test", students=3, passed=2, mean=1.5, max_score=2.0)
    essay = CellRateOut(notebook="ps1", cell="essay", students=2, passed=1, mean=1.0, max_score=2.0)
    assert made.cells == [rate, essay]
    assert statistics(found.model_copy(update={"grades": []})).distribution is None


def test_the_table_of_a_course_leaves_missing_points_empty() -> None:
    found = CourseGradebookOut(
        course="cs101",
        assignments=[
            GradebookAssignmentOut(name="ps1", max_score=4.0),
            GradebookAssignmentOut(name="ps2"),
        ],
        rows=[
            GradebookRowOut(
                person="=ada",
                full_name="Ada",
                scores=[GradebookScoreOut(score=2.5, submitted=True), GradebookScoreOut()],
            )
        ],
    )
    assert gradebook_csv(found).splitlines() == [
        "student,name,section,ps1,ps2,total,max_total",
        "'=ada,Ada,,2.5,,2.5,4.0",
    ]
