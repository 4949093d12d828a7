"""Feedback from what was graded: nbgrader's own pages, given back to their student."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ...hub.errors import CarrelError, Conflict, NotFound, TooLarge, Unavailable
from ...hub.files.local import MAX_OUTPUT_BYTES
from ...hub.files.safe_fs import opened_file
from ...hub.records.identity import Identity
from ...hub.schemas.admin import ConsequencesOut
from ..deadlines.shifts import DeadlineShifts, late_penalty
from ..files.bundle import FileBundle
from ..files.transfer import contents
from ..gradebook import reader
from ..gradebook.grades import grades, newest_cells
from ..gradebook.reader import GradebookPage
from ..grading_runs.service import GradingService
from ..model.records import Assignment, Member, Submission, SubmissionVerdict
from ..roster.access import GRADED_BY, CourseMembership, check_open
from .delivery import GRADE, FeedbackDelivery

if TYPE_CHECKING:
    from ..grading.answer_key import NotebookKey


@dataclass(frozen=True, slots=True, kw_only=True)
class _Graded:
    """A class as it was graded at one moment, with what its pages are made of.

    Attributes:
        counting: what counts, by student.
        keys: of the notebooks of the newest hand-out.
        folder: nbgrader's, of the course.
        book: a copy of the gradebook: teachers' programs may write the one in the folder.
    """

    assignment: Assignment
    verdicts: tuple[SubmissionVerdict, ...]
    counting: Mapping[str, tuple[Member, Submission]]
    keys: tuple[NotebookKey, ...]
    folder: Path
    book: Path

    def pages(self, sent: Submission, notebook: str = "") -> dict[str, bytes]:
        """Of each notebook that was handed in, or of one of them; by name."""
        wanted = [key for key in self.keys if notebook in {"", key.name}]
        found = {f"{key.name}.html": self._page(sent, key) for key in wanted}
        return {name: page.encode() for name, page in found.items() if page is not None}

    def _page(self, sent: Submission, key: NotebookKey) -> str | None:
        # nbgrader takes seconds to import, and is an extra.
        from ..notebooks import ipynb  # noqa: PLC0415
        from .page import feedback_page  # noqa: PLC0415

        steps = ("autograded", sent.person, self.assignment.name, f"{key.name}.ipynb")
        try:
            with opened_file(self.folder, *steps) as file:
                graded = file.read(MAX_OUTPUT_BYTES + 1)
        except OSError:
            return None  # It was not handed in.
        if len(graded) > MAX_OUTPUT_BYTES:
            raise TooLarge(
                f"{'/'.join(steps)} is too large for a page.",
                accepted=f"At most {MAX_OUTPUT_BYTES >> 20} MiB in the course's folder.",
            )
        cells = newest_cells(each for each in self.verdicts if each.submission == sent.id)
        return feedback_page(
            ipynb.read(steps[-1], graded),
            key,
            assignment=self.assignment.name,
            student=sent.person,
            gradebook=f"sqlite:///{self.book}",
            sentences={cell.cell: cell.sentence for cell in cells if cell.notebook == key.name},
        )

    def grade(
        self,
        member: Member,
        sent: Submission,
        moved: DeadlineShifts,
        by_hand: Mapping[str, GradebookPage],
    ) -> bytes:
        """The points as they are given back."""
        penalty = late_penalty(self.assignment, moved, member, sent)
        page = by_hand.get(member.person)
        return grades(member, sent, self.verdicts, penalty, page=page).model_dump_json().encode()


class FeedbackService(GradingService, FeedbackDelivery):
    """The part of ``CourseDesk`` about making feedback of verdicts."""

    __slots__ = ()

    def release_feedback(
        self, who: Identity, course: str, name: str, person: str
    ) -> ConsequencesOut:
        """A student gets pages with the points of the gradebook and the verdicts' sentences.

        Raises:
            Forbidden: for students.
            Conflict: nothing of theirs that counts was graded, or something else after it.
            Unavailable: nothing is graded at this site.
        """
        for _, problem in self.release_to_class(who, course, name, (person,)):
            if problem is not None:
                raise problem
        return ConsequencesOut(sentences=[f"{person} has feedback on {name}."], saved=True)

    def release_to_class(
        self, who: Identity, course: str, name: str, people: Iterable[str]
    ) -> Generator[tuple[str, CarrelError | None], None, None]:
        """One after the other, as they are asked for; each with why they got none.

        Raises:
            Forbidden: for students.
            Conflict: the course is archived.
            Unavailable: nothing is graded at this site.
        """
        place = self.place(who, course, GRADED_BY)
        check_open(place.course)
        moved = self.moved_in(course)
        with self._graded(place, name) as graded:
            by_hand = self.by_hand(course, name)
            for person in people:
                try:
                    member, sent = self._judged(graded, person)
                    grade = graded.grade(member, sent, moved, by_hand)
                    self.deliver(
                        who, sent, FileBundle.of([*graded.pages(sent).items(), (GRADE, grade)])
                    )
                except CarrelError as error:
                    yield person, error
                else:
                    yield person, None

    def preview_feedback(
        self, who: Identity, course: str, name: str, person: str, notebook: str
    ) -> bytes:
        """A page as ``release_feedback`` would give it back now; nothing is given.

        Raises:
            NotFound: they have handed in no such notebook.
        """
        with self._graded(self.place(who, course, GRADED_BY), name) as graded:
            _, sent = self._judged(graded, person)
            for page in graded.pages(sent, notebook).values():
                return page
        raise NotFound(f"{person} has handed in no {notebook[:80]}.ipynb.")

    @contextmanager
    def _graded(self, place: CourseMembership, name: str) -> Iterator[_Graded]:
        from ..releases.student_version import prepare  # noqa: PLC0415 - takes seconds, and nbgrader is an extra

        assignment = self.assignment(place, name)
        course = place.course.name
        folder = self.folder_of(course)
        if folder is None:
            raise Unavailable("Nothing is graded here, so that there is no feedback.")
        # A verdict comes after its page of the gradebook, and is read before.
        verdicts = self.store.verdicts(course, name)
        if not verdicts:
            raise Conflict(
                f"Nothing in {name} has been graded.", accepted=f"First: carrel course grade {name}"
            )
        source = contents(self.blobs, self.store.hand_out(course, name).source.files)
        with TemporaryDirectory() as scratch:
            book = Path(scratch) / reader.NAME
            reader.copy(folder, book)
            yield _Graded(
                assignment=assignment,
                verdicts=verdicts,
                counting={
                    sent.person: (member, sent) for member, sent in self._counting(assignment)
                },
                keys=prepare(name, source).key.notebooks,
                folder=folder,
                book=book,
            )

    def _judged(self, graded: _Graded, person: str) -> tuple[Member, Submission]:
        """The graded notebook that lies there must be the one of what counts."""
        course, name = graded.assignment.course, graded.assignment.name
        found = graded.counting.get(person)
        if found is not None:
            own = {each.id for each in self.store.submissions(course, name, person)}
            judged = [
                each for each in graded.verdicts if each.submission in own and not each.why_not
            ]
            # Verdicts are in the order of their runs; within one, a student has one submission.
            if judged and judged[-1].submission == found[1].id:
                return found
        raise Conflict(
            f"What counts of {person} in {name} has not been graded, or not as the last.",
            accepted=f"First: carrel course grade {name} --student {person}",
        )
