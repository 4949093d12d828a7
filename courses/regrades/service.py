"""Regrade requests: a student asks about points, and graders answer in the same thread."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from ...hub.errors import Conflict, Forbidden, InvalidInput, NotFound
from ...hub.records.identity import Identity
from ...hub.schemas.grading import RegradeIn, RegradeMessageOut, RegradeOut, RegradeReplyIn
from ..feedback.delivery import FeedbackDelivery
from ..model.records import CourseRole, RegradeMessage, RegradeRequest
from ..model.written_text import check_written
from ..roster.access import CourseAccess, CourseMembership, check_not_archived
from ..store.not_found import no_regrade

MOST_TEXT: Final = 5000
"""Characters of one message."""
MOST_MESSAGES: Final = 100
"""Messages of one thread."""


@dataclass(frozen=True, slots=True)
class RegradeService:
    """Regrade requests, for their student and for graders."""

    access: CourseAccess
    delivery: FeedbackDelivery

    def ask(self, who: Identity, course: str, name: str, body: RegradeIn) -> RegradeOut:
        """Open a request about one cell, or about all of an assignment. For students.

        Asking the same again returns the open request.

        Raises:
            Forbidden: the user is not a student of the course.
            Conflict: the course is archived, there is no feedback yet, or a request about this
                cell is open.
            InvalidInput, TooLarge: of the cell or the text.
        """
        membership = self.access.membership(who, course)
        if membership.role is not CourseRole.STUDENT:
            raise Forbidden(
                f"You are a {membership.role} of {course}.",
                accepted="Its students ask for a regrade.",
            )
        check_not_archived(membership.course)
        text = _text(body.text)
        mine = self.delivery.own_grade(who, course, name)
        if mine.submission is None:
            raise Conflict(
                f"There is no feedback on {name} yet.", accepted="Ask when you have your points."
            )
        known = [(c.notebook, c.cell) for c in mine.grade.cells] if mine.grade else []
        if body.cell and (body.notebook, body.cell) not in known:
            raise InvalidInput(
                f"{name} has no graded cell {body.cell[:80]!r}.",
                accepted=f"One of: {', '.join(cell for _, cell in known)}.",
                field="cell",
            )
        now = self.access.context.clock()
        asked = RegradeRequest(
            id=0,
            course=course,
            assignment=name,
            person=who.name,
            notebook=body.notebook if body.cell else "",
            cell=body.cell,
            opened_at=now,
            messages=(RegradeMessage(author=who.name, at=now, text=text),),
        )
        made = self.access.store.open_regrade(asked)
        if made.messages[0].text != text:
            raise Conflict(
                f"A request of yours about {body.cell or name} is open.",
                accepted="Write into its thread.",
            )
        return _out(made)

    def reply(
        self,
        who: Identity,
        regrade_id: int,
        body: RegradeReplyIn,
        *,
        course: str | None = None,
        assignment: str | None = None,
    ) -> RegradeOut:
        """Add a message, close the request, or both. A repeated call changes nothing.

        With a course, or an assignment, other requests do not exist.

        Raises:
            NotFound: there is no such request, or it is another student's.
            Conflict: the course is archived, or the request is closed.
            InvalidInput, TooLarge: of the text, or there is neither a text nor a closing.
        """
        found, membership = self._found(who, regrade_id)
        _check_part_of(found, course, assignment)
        check_not_archived(membership.course)
        text = _text(body.text, may_be_empty=body.close)
        message = RegradeMessage(author=who.name, at=self.access.context.clock(), text=text)
        return _out(
            self.access.store.update_regrade(
                regrade_id, lambda found: _with_reply(found, message, close=body.close)
            )
        )

    def show(self, who: Identity, course: str, regrade_id: int) -> RegradeOut:
        """One request of a course. Raises NotFound."""
        found, _ = self._found(who, regrade_id)
        _check_part_of(found, course, None)
        return _out(found)

    def requests(
        self, who: Identity, course: str, assignment: str | None = None
    ) -> list[RegradeOut]:
        """The requests of a course, open ones first, then the newest; students see their own."""
        membership = self.access.membership(who, course)
        person = who.name if membership.role is CourseRole.STUDENT else None
        found = self.access.store.regrades(course, assignment, person)
        return [
            _out(each)
            for each in sorted(found, key=lambda r: (r.closed_at is not None, -r.opened_at))
        ]

    def _found(self, who: Identity, regrade_id: int) -> tuple[RegradeRequest, CourseMembership]:
        found = self.access.store.regrade(regrade_id)
        try:
            membership = self.access.membership(who, found.course)
        except NotFound:
            raise no_regrade(regrade_id) from None
        if membership.role is CourseRole.STUDENT and found.person != who.name:
            raise no_regrade(regrade_id)
        return found, membership


def _check_part_of(found: RegradeRequest, course: str | None, assignment: str | None) -> None:
    """Raises NotFound where the request is of another course or assignment; None: of any."""
    if course not in {None, found.course} or assignment not in {None, found.assignment}:
        raise no_regrade(found.id)


def _with_reply(found: RegradeRequest, reply: RegradeMessage, *, close: bool) -> RegradeRequest:
    """The request after a reply, which may have no text. Raises Conflict."""
    last = found.messages[-1]
    repeated = not reply.text or (last.author, last.text) == (reply.author, reply.text)
    if found.closed_at is not None:
        if repeated and close:
            return found
        raise Conflict(
            f"This request was closed by {found.closed_by}.",
            accepted="The student can open a new one.",
        )
    if len(found.messages) >= MOST_MESSAGES and not repeated:
        raise Conflict(f"This thread has {MOST_MESSAGES} messages.", accepted="Close it, or talk.")
    changed = found if repeated else replace(found, messages=(*found.messages, reply))
    return replace(changed, closed_at=reply.at, closed_by=reply.author) if close else changed


def _text(text: str, *, may_be_empty: bool = False) -> str:
    """The text as it is stored. Raises InvalidInput, TooLarge."""
    found = text.replace("\r\n", "\n").strip()
    if not found and not may_be_empty:
        raise InvalidInput(
            "The message is empty.", accepted="What you would like to say.", field="text"
        )
    check_written(found, "The message", most=MOST_TEXT, field="text")
    return found


def _out(found: RegradeRequest) -> RegradeOut:
    return RegradeOut(
        id=found.id,
        course=found.course,
        assignment=found.assignment,
        person=found.person,
        notebook=found.notebook,
        cell=found.cell,
        opened_at=found.opened_at,
        closed_at=found.closed_at,
        closed_by=found.closed_by,
        messages=[
            RegradeMessageOut(author=each.author, at=each.at, text=each.text)
            for each in found.messages
        ],
    )
