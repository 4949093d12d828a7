"""Feedback from what was graded: nbgrader's own pages, given back to their student."""

from __future__ import annotations

from pathlib import Path

from ..hub.errors import Conflict, Unavailable
from ..hub.ports.audit import Action
from ..hub.ports.world import Identity
from ..hub.wire.administration import ConsequencesOut
from .carrying import kept
from .grades import newest_cells
from .judging import Judging
from .model import Feedback, HandOut, Submission, Verdict
from .parcels import Parcel
from .rights import GRADED_BY, check_open


class WritingBack(Judging):
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
        place = self.place(who, course, GRADED_BY)
        check_open(place.course)
        assignment = self.assignment(place, name)
        if self.folder is None:
            raise Unavailable("Nothing is graded here, so that there is no feedback.")
        verdicts = self.store.verdicts(course, name)
        sent = next((each for _, each in self._counting(assignment, person)), None)
        self._check_graded(name, person, sent, verdicts)
        assert sent is not None, "it was just checked"
        pages = self._pages(self.store.hand_out(course, name), sent, verdicts, self.folder / course)
        feedback = Feedback(
            submission=sent.id,
            files=kept(self.blobs, Parcel.of(pages.items())),
            released_at=self.commands.clock(),
            released_by=who.name,
        )
        change = self.change(
            *(who, Action.FEEDBACK_RELEASE, f"{course}/{name}"),
            after={"person": person, "number": sent.number},
        )
        self.store.give_back(feedback, change=change)
        return ConsequencesOut(sentences=[f"{person} has feedback on {name}."], saved=True)

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

    def _pages(
        self, made: HandOut, sent: Submission, verdicts: tuple[Verdict, ...], folder: Path
    ) -> dict[str, bytes]:
        # Takes seconds, and nbgrader is an extra.
        from . import ipynb  # noqa: PLC0415
        from .grading.feedback import feedback_page  # noqa: PLC0415
        from .handout import prepare  # noqa: PLC0415

        source = {}
        for file in made.source.files:
            with self.blobs.open(file.sha256) as content:
                source[file.name] = content.read()
        cells = newest_cells(each for each in verdicts if each.submission == sent.id)
        graded = folder / "autograded" / sent.person / made.assignment
        pages = {}
        for key in prepare(made.assignment, source).key.notebooks:
            path = graded / f"{key.name}.ipynb"
            if not path.is_file():
                continue  # It was not handed in.
            page = feedback_page(
                ipynb.read(path.name, path.read_bytes()),
                key,
                assignment=made.assignment,
                student=sent.person,
                gradebook=f"sqlite:///{folder / 'gradebook.db'}",
                sentences={cell.cell: cell.sentence for cell in cells if cell.notebook == key.name},
            )
            pages[f"{key.name}.html"] = page.encode()
        return pages
