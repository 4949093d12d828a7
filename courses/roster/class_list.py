"""List the members of a course: those on its roster, and those in its JupyterHub group."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ...hub.errors import NotFound, Unavailable
from ...hub.runtime.context import Context
from ...hub.schemas.courses import MemberOut
from ..model.interfaces import CourseStore
from ..model.records import CourseRole, Member

MAX_AGE_SECONDS = 30.0
"""How old the hub's list of users may be where it is only shown."""


@dataclass(frozen=True, slots=True)
class ClassList:
    """The students and graders of each course. Teachers are not in it."""

    context: Context
    store: CourseStore

    def members(self, course: str) -> tuple[Member, ...]:
        """Every member on the roster or in the JupyterHub group, by name."""
        listed = self.store.members(course)
        found = (*listed, *self.unlisted(course, listed))
        return tuple(sorted(found, key=lambda each: each.person))

    def students(self, course: str) -> list[Member]:
        """The current students, by name."""
        return [
            each
            for each in self.members(course)
            if each.role is CourseRole.STUDENT and each.left_at is None
        ]

    def lookup(self, course: str) -> Callable[[str], Member]:
        """A function from a name to its roster entry; without an entry they are a student."""
        known = {each.person: each for each in self.store.members(course)}
        return lambda person: known.get(person) or Member(course=course, person=person)

    def unlisted(
        self, course: str, listed: Iterable[Member], *, fresh: bool = False
    ) -> tuple[Member, ...]:
        """Members of the JupyterHub group who never were on a roster.

        Args:
            listed: the roster.
            fresh: ask the hub now.

        Raises:
            Unavailable: with ``fresh``, where the hub does not answer.
        """
        known = {each.person for each in listed}
        try:
            users = self.context.hub.users(within=0.0 if fresh else MAX_AGE_SECONDS)
        except Unavailable:
            if fresh:
                raise
            users = ()
        known.update(self.context.store.teachers(course))
        return tuple(
            Member(course=course, person=user.name)
            for user in users
            if course in user.groups and not user.admin and user.name not in known
        )

    def member(self, course: str, person: str) -> Member:
        """A current member of the course. Raises NotFound."""
        known = next((each for each in self.members(course) if each.person == person), None)
        if known is None or known.left_at is not None:
            raise NotFound(
                f"{person[:80]} is not in {course}.", accepted=f"See: carrel course roster {course}"
            )
        return known


def member_out(member: Member) -> MemberOut:
    return MemberOut(
        person=member.person,
        full_name=member.full_name,
        section=member.section,
        role=str(member.role),
        left_at=member.left_at,
    )
