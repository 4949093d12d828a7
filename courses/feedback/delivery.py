"""What students get back: feedback on a submission, for its student and for those who grade."""

from __future__ import annotations

from ...hub.errors import InvalidInput
from ...hub.interfaces.files import Identity
from ...hub.records.audit import Action
from ...hub.schemas.courses import ContentOut, ParcelIn
from ..files.bundle import Parcel
from ..files.transfer import content_out, given_parcel, kept
from ..model.records import Feedback, Submission
from ..roster.access import GRADED_BY, Rights, check_open

GRADE = ".grade.json"
"""Beside the pages: the points as they were when they were given back. Not one of the files."""


class Returning(Rights):
    """The part of ``CourseDesk`` about what goes back."""

    __slots__ = ()

    def give_back(self, who: Identity, submission_id: int, body: ParcelIn) -> None:
        """The student sees it from now on; what was given back for the same before is gone.

        Raises:
            Forbidden: for students.
            InvalidInput, TooLarge: of the files; nothing is stored then.
        """
        found = self.store.submission(submission_id)
        check_open(self.place(who, found.course, GRADED_BY).course)
        parcel = given_parcel(body)
        if parcel is None:
            raise InvalidInput("There is no feedback in it.", accepted="Files.", field="files")
        self.hand_back(who, found, parcel)

    def hand_back(self, who: Identity, sent: Submission, parcel: Parcel) -> None:
        """Whose submission it is, and whether who does it may, was asked before."""
        feedback = Feedback(
            submission=sent.id,
            files=kept(self.blobs, parcel),
            released_at=self.commands.clock(),
            released_by=who.name,
        )
        change = self.change(
            *(who, Action.FEEDBACK_RELEASE, f"{sent.course}/{sent.assignment}"),
            after={"person": sent.person, "number": sent.number},
        )
        self.store.give_back(feedback, change=change)

    def feedback(self, who: Identity, submission_id: int) -> list[ContentOut]:
        """Its files; none where nothing was given back yet."""
        found = self.submission(who, submission_id)
        given = self.store.feedback(found.course, found.assignment, found.person).get(found.id)
        files = () if given is None else given.files.files
        return [content_out(self.blobs, file) for file in files if file.name != GRADE]
