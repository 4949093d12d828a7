"""Write feedback pages from verdicts and the gradebook, and release them to students."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ...hub.errors import CarrelError, Conflict, NotFound, Unavailable
from ...hub.messages import units
from ...hub.records.audit import AuditAction
from ...hub.records.identity import Identity
from ...hub.schemas.admin import ConsequencesOut
from ..deadlines.shifts import DeadlineShifts, late_penalty
from ..files.bundle import FileBundle
from ..files.course_folder import folder_of
from ..files.transfer import contents
from ..gradebook import reader
from ..gradebook.graded_notebook import graded_notebook
from ..gradebook.grades import grades, newest_cells
from ..gradebook.reader import GradebookPage
from ..grading_runs.service import GradingService
from ..model.interfaces import Blobs
from ..model.records import Assignment, Member, Submission, SubmissionVerdict
from ..roster.access import GRADERS, CourseAccess, CourseMembership, check_not_archived
from .delivery import GRADE, FeedbackDelivery, newest

if TYPE_CHECKING:
    from ..grading.answer_key import NotebookKey


@dataclass(frozen=True, slots=True, kw_only=True)
class _GradedClass:
    """A class as it was graded at one moment, with what its pages are written from.

    Attributes:
        counting: the student and the submission that counts, by the student's name.
        keys: of the notebooks of the newest version.
        folder: nbgrader's folder of the course.
        gradebook: a copy: teachers' programs may write the one in the folder.
        entries: of the gradebook, by student.
    """

    assignment: Assignment
    verdicts: tuple[SubmissionVerdict, ...]
    counting: Mapping[str, tuple[Member, Submission]]
    keys: tuple[NotebookKey, ...]
    folder: Path
    gradebook: Path
    entries: Mapping[str, GradebookPage]

    def pages(self, submission: Submission, notebook: str = "") -> dict[str, bytes]:
        """The page of each submitted notebook, or of one of them, by name."""
        wanted = [key for key in self.keys if notebook in {"", key.name}]
        found = {f"{key.name}.html": self._page(submission, key) for key in wanted}
        return {name: page.encode() for name, page in found.items() if page is not None}

    def _page(self, submission: Submission, key: NotebookKey) -> str | None:
        # nbgrader takes seconds to import, and is an extra.
        from ..notebooks import ipynb  # noqa: PLC0415
        from .page import feedback_page  # noqa: PLC0415

        graded = graded_notebook(self.folder, submission.person, self.assignment.name, key.name)
        if graded is None:
            return None
        cells = newest_cells(each for each in self.verdicts if each.submission == submission.id)
        return feedback_page(
            ipynb.read(f"{key.name}.ipynb", graded),
            key,
            assignment=self.assignment.name,
            student=submission.person,
            gradebook=f"sqlite:///{self.gradebook}",
            sentences={cell.cell: cell.sentence for cell in cells if cell.notebook == key.name},
            provisional=self._provisional(submission, key.name),
        )

    def _provisional(self, submission: Submission, notebook: str) -> int:
        """How many cells of a notebook wait for a person."""
        page = self.entries.get(submission.person)
        if page is None or not page.is_of(submission.at):
            return 0
        return sum(entry.waits for (name, _), entry in page.cells.items() if name == notebook)

    def grade(
        self,
        member: Member,
        submission: Submission,
        shifts: DeadlineShifts,
    ) -> bytes:
        """The points as they are released, as JSON."""
        penalty = late_penalty(self.assignment, shifts, member, submission)
        page = self.entries.get(member.person)
        found = grades(member, submission, self.verdicts, penalty, page=page)
        return found.model_dump_json().encode()


@dataclass(frozen=True, slots=True)
class FeedbackService:
    """Attributes:
    root: the folder of all courses, with their gradebooks; None where nothing is graded.
    """

    access: CourseAccess
    grading: GradingService
    delivery: FeedbackDelivery
    blobs: Blobs
    root: Path | None = None

    def release(self, who: Identity, course: str, name: str, person: str) -> ConsequencesOut:
        """Release pages to one student, with the gradebook's points and the verdicts' sentences.

        Raises:
            Forbidden: the user is a student.
            Conflict: the student's submission that counts is not the one that was graded last.
            Unavailable: nothing is graded at this site.
        """
        self.access.membership(who, course, GRADERS)
        self.access.check_unchanged(
            *(who, AuditAction.FEEDBACK_RELEASE, f"{course}/{name}"), before={"person": person}
        )
        for _, problem in self.release_to_class(who, course, name, (person,)):
            if problem is not None:
                raise problem
        feedback = self.access.store.feedback(course, name, person)
        given = newest(feedback.values())
        grade = None if given is None else self.delivery.released_grade(given)
        waits = units.provisional(grade.provisional) if grade is not None else ""
        sentence = f"{person} has feedback on {name}"
        said = f"{sentence}; the points are {waits}." if waits else f"{sentence}."
        return ConsequencesOut(sentences=[said], saved=True)

    def release_to_class(
        self, who: Identity, course: str, name: str, people: Iterable[str]
    ) -> Generator[tuple[str, CarrelError | None], None, None]:
        """Release pages to one student after the other; yields each with the error, if any.

        Raises:
            Forbidden: the user is a student.
            Conflict: the course is archived.
            Unavailable: nothing is graded at this site.
        """
        membership = self.access.membership(who, course, GRADERS)
        check_not_archived(membership.course)
        shifts = DeadlineShifts.read(self.access.store, course)
        with self._graded(membership, name) as graded:
            for person in people:
                try:
                    member, submission = self._graded_submission(graded, person)
                    grade = graded.grade(member, submission, shifts)
                    pages = graded.pages(submission)
                    bundle = FileBundle.of([*pages.items(), (GRADE, grade)])
                    self.delivery.deliver(who, submission, bundle)
                except CarrelError as error:
                    yield person, error
                else:
                    yield person, None

    def preview(self, who: Identity, course: str, name: str, person: str, notebook: str) -> bytes:
        """One page as ``release`` would deliver it now; nothing is stored.

        Raises:
            NotFound: the student has not submitted this notebook.
        """
        with self._graded(self.access.membership(who, course, GRADERS), name) as graded:
            _, submission = self._graded_submission(graded, person)
            for page in graded.pages(submission, notebook).values():
                return page
        raise NotFound(f"{person} has not submitted {notebook[:80]}.ipynb.")

    @contextmanager
    def _graded(self, membership: CourseMembership, name: str) -> Iterator[_GradedClass]:
        from ..releases.student_version import prepare  # noqa: PLC0415 - takes seconds, and nbgrader is an extra

        store, course = self.access.store, membership.course.name
        assignment = self.access.assignment(membership, name)
        folder = folder_of(self.root, course)
        if folder is None:
            raise Unavailable("Nothing is graded here, so that there is no feedback.")
        # A verdict is stored after its page of the gradebook, and so is read before it.
        verdicts = store.verdicts(course, name)
        if not verdicts:
            raise Conflict(
                f"Nothing in {name} has been graded.", accepted=f"First: carrel course grade {name}"
            )
        source = contents(self.blobs, store.released_version(course, name).source.files)
        with TemporaryDirectory() as scratch:
            gradebook = Path(scratch) / reader.NAME
            reader.copy(folder, gradebook)
            yield _GradedClass(
                assignment=assignment,
                verdicts=verdicts,
                counting={
                    submission.person: (member, submission)
                    for member, submission in self.grading.counting(assignment)
                },
                keys=prepare(name, source).key.notebooks,
                folder=folder,
                gradebook=gradebook,
                entries=reader.pages(folder, name),
            )

    def _graded_submission(self, graded: _GradedClass, person: str) -> tuple[Member, Submission]:
        """The submission that counts; raises Conflict where another one was graded last.

        The graded notebooks in the course's folder are those of the last one.
        """
        course, name = graded.assignment.course, graded.assignment.name
        found = graded.counting.get(person)
        if found is not None:
            own = {each.id for each in self.access.store.submissions(course, name, person)}
            verdicts = [
                each for each in graded.verdicts if each.submission in own and not each.why_not
            ]
            # Verdicts are in the order of their runs; within one, a student has one submission.
            if verdicts and verdicts[-1].submission == found[1].id:
                return found
        raise Conflict(
            f"What counts of {person} in {name} has not been graded, or not as the last.",
            accepted=f"First: carrel course grade {name} --student {person}",
        )
