"""Feedback from what was graded: nbgrader's own pages, given back to their student."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from ..hub.errors import Conflict, Unavailable
from ..hub.folders import opened_file
from ..hub.ports.world import Identity
from ..hub.wire.administration import ConsequencesOut
from . import gradebook_file
from .carrying import contents
from .grades import grades, newest_cells
from .judging import Judging, late_penalty
from .model import Assignment, HandOut, Member, Submission, Verdict
from .parcels import Parcel
from .returning import GRADE, Returning
from .rights import GRADED_BY, check_open


class WritingBack(Judging, Returning):
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
        check_open(self.place(who, course, GRADED_BY).course)
        sent, pages = self._made_back(who, course, name, person)
        self.hand_back(who, sent, Parcel.of(pages.items()))
        return ConsequencesOut(sentences=[f"{person} has feedback on {name}."], saved=True)

    def preview_feedback(
        self, who: Identity, course: str, name: str, person: str
    ) -> dict[str, bytes]:
        """The pages as ``release_feedback`` would give them back now, by name; nothing is given."""
        _, pages = self._made_back(who, course, name, person)
        return {name: page for name, page in pages.items() if name != GRADE}

    def _made_back(
        self, who: Identity, course: str, name: str, person: str
    ) -> tuple[Submission, dict[str, bytes]]:
        """What counts of a student, and what they would get for it."""
        assignment = self.assignment(self.place(who, course, GRADED_BY), name)
        folder = self.folder_of(course)
        if folder is None:
            raise Unavailable("Nothing is graded here, so that there is no feedback.")
        verdicts = self.store.verdicts(course, name)
        member, sent = next(iter(self._counting(assignment, person)), (None, None))
        self._check_graded(name, person, sent, verdicts)
        assert member is not None, "it was just checked"
        assert sent is not None, "it was just checked"
        pages = self._pages(self.store.hand_out(course, name), sent, verdicts, folder)
        pages[GRADE] = self._grade_now(assignment, member, sent, verdicts)
        return sent, pages

    def _check_graded(
        self, name: str, person: str, sent: Submission | None, verdicts: tuple[Verdict, ...]
    ) -> None:
        """The graded notebook that lies there must be the one of what counts."""
        if sent is not None:
            own = {each.id for each in self.store.submissions(sent.course, name, person)}
            judged = [each for each in verdicts if each.submission in own and not each.why_not]
            # Verdicts are in the order of their runs; within one, a student has one submission.
            if judged and judged[-1].submission == sent.id:
                return
        raise Conflict(
            f"What counts of {person} in {name} has not been graded, or not as the last.",
            accepted=f"First: carrel course grade {name} --student {person}",
        )

    def _grade_now(
        self, assignment: Assignment, member: Member, sent: Submission, verdicts: Iterable[Verdict]
    ) -> bytes:
        penalty = late_penalty(assignment, self.moved_in(assignment.course), member, sent)
        by_hand = self.by_hand(assignment.course, assignment.name)
        grade = grades(member, sent, verdicts, penalty, page=by_hand.get(member.person))
        return grade.model_dump_json().encode()

    def _pages(
        self, made: HandOut, sent: Submission, verdicts: tuple[Verdict, ...], folder: Path
    ) -> dict[str, bytes]:
        # Takes seconds, and nbgrader is an extra.
        from . import ipynb  # noqa: PLC0415
        from .grading.feedback import feedback_page  # noqa: PLC0415
        from .handout import prepare  # noqa: PLC0415

        source = contents(self.blobs, made.source.files)
        cells = newest_cells(each for each in verdicts if each.submission == sent.id)
        pages = {}
        with TemporaryDirectory() as scratch:
            # Teachers' programs may write the gradebook; nbgrader opens a copy of it.
            book = Path(scratch) / gradebook_file.NAME
            gradebook_file.copy(folder, book)
            for key in prepare(made.assignment, source).key.notebooks:
                steps = ("autograded", sent.person, made.assignment, f"{key.name}.ipynb")
                try:
                    with opened_file(folder, *steps) as file:
                        graded = file.read()
                except OSError:
                    continue  # It was not handed in.
                own = [cell for cell in cells if cell.notebook == key.name]
                page = feedback_page(
                    ipynb.read(steps[-1], graded),
                    key,
                    assignment=made.assignment,
                    student=sent.person,
                    gradebook=f"sqlite:///{book}",
                    sentences={cell.cell: cell.sentence for cell in own},
                )
                pages[f"{key.name}.html"] = page.encode()
        return pages
