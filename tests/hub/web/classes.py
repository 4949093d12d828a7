"""A graded class in memory, with students in every state."""

from __future__ import annotations

import random

from carrel.courses.files.bundle import FileBundle
from carrel.courses.files.transfer import store_bundle
from carrel.courses.model.records import CellScore, Member, NewSubmission, SubmissionVerdict
from carrel.courses.services import CourseServices
from carrel.hub.records.identity import Identity
from carrel.hub.schemas.grading import GradeIn

_WORDS = (
    ("passed", 2.0, "The test passed."),
    ("partly", 1.0, "The test gave a part of the points."),
    ("failed", 0.0, "A check of this test failed."),
    ("needs a person", None, "A person reads this answer."),
)


def fill(
    services: CourseServices,
    who: Identity,
    students: int,
    *,
    course: str = "cs101",
    name: str = "ps1",
    cells: int = 1,
) -> str:
    """Most of them hand in, most of those are graded. The id of the run.

    Student 0 hands in nothing, 1 too late, 2 is not graded yet, 3 cannot be graded, and of 4 a
    person has to look at something; the others get what chance gives them.
    """
    chance = random.Random(7)  # noqa: S311  # no secret
    names = [f"person{number:03}" for number in range(students)]
    people = [
        Member(
            course=course,
            person=person,
            full_name=f"Student Number {number}",
            section=("blue", "red")[number % 2],
        )
        for number, person in enumerate(names)
    ]
    services.access.store.put_members(course, people)
    for number, person in enumerate(names[1:], 1):
        late = 40 * 86400.0 if number == 1 else 0.0
        at = services.access.context.clock() + late
        files = store_bundle(
            services.submissions.blobs,
            FileBundle.of([("ps1.ipynb", f"work of {person}".encode())]),
        )
        services.access.store.submit(
            NewSubmission(course=course, assignment=name, person=person, at=at, files=files)
        )
    run = services.grading.start(who, course, name, GradeIn()).request
    sent = {each.person: each.id for each in services.access.store.submissions(course, name)}
    for number, person in enumerate(names[3:], 3):
        verdict = SubmissionVerdict(
            request=run,
            submission=sent[person],
            at=services.access.context.clock(),
            seconds=0.5,
            cells=() if number == 3 else tuple(_cells(chance, cells, look=number == 4)),
            why_not="The notebook cannot be read." if number == 3 else "",
        )
        services.access.store.add_verdict(verdict)
    return run


def _cells(chance: random.Random, cells: int, *, look: bool) -> list[CellScore]:
    made = []
    for number in range(cells):
        word, score, sentence = _WORDS[3 if look else chance.choice((0, 0, 0, 1, 2))]
        made.append(
            CellScore(
                notebook="ps1",
                cell="test-answer" if number == 0 else f"test-{number}",
                word=word,
                sentence=sentence,
                score=score,
                max_score=2.0,
                review=look,
            )
        )
    return made
