"""Who may do what in a course, and what all parts of the desk of courses work with.

| role | may |
| --- | --- |
| administrator | everything, and alone: make and clone courses, record outages |
| teacher | release, extend, choose, change the roster, archive; sees all of the course |
| grader | see all that was handed in |
| student | fetch and hand in; sees the own |

To everybody else a course does not exist. Teachers are those of the group. A student is who the
roster names, and whoever else is in the group at JupyterHub without having left the course.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..hub.commands import Commands
from ..hub.errors import Conflict, Forbidden, NotFound, Unavailable
from ..hub.people import People
from ..hub.ports.audit import Action, Change
from ..hub.ports.records import Json
from ..hub.ports.world import Identity
from ..hub.quota_tree import QuotaTree
from .model import Assignment, Course, Member, Role, Submission
from .ports import Blobs, CourseStore
from .sandbox.port import CageEngine
from .store.missing import no_assignment, no_course, no_submission

TAUGHT_BY = (Role.TEACHER,)
GRADED_BY = (Role.TEACHER, Role.GRADER)
EVERYBODY = tuple(Role)
_SHOWN_SECONDS = 30.0
"""How old the hub's list of users may be where nothing is changed by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A course with the role in which somebody is there."""

    course: Course
    role: Role
    member: Member


@dataclass(frozen=True, slots=True)
class Rights:
    """Base of the parts of ``CourseDesk``.

    Attributes:
        cages: makes an engine of cages, in which a release is tried; None where there is none.
        folder: of all courses, with nbgrader's folders and gradebook of each; None without.
    """

    commands: Commands
    store: CourseStore
    blobs: Blobs
    cages: Callable[[], CageEngine] | None = None
    folder: Path | None = None

    def place(self, who: Identity, name: str, roles: Collection[Role] = EVERYBODY) -> Place:
        """Raises NotFound for strangers, and Forbidden in another role than these."""
        found = self._place(who, self.store.course(name), self.store.memberships(who.name))
        if found is None:
            raise no_course(name)
        if found.role not in roles:
            raise Forbidden(
                f"You are a {found.role} of {name}.",
                accepted=f"This is for its {' and '.join(f'{role}s' for role in roles)}.",
            )
        return found

    def places(self, who: Identity) -> list[Place]:
        """All courses in which somebody has a role, by name."""
        mine = self.store.memberships(who.name)
        found = (self._place(who, course, mine) for course in self.store.courses())
        return [each for each in found if each is not None]

    def _place(self, who: Identity, course: Course, mine: Collection[Member]) -> Place | None:
        known = next((each for each in mine if each.course == course.name), None)
        member = known or Member(course=course.name, person=who.name)
        role: Role | None = None
        if who.admin or course.name in self.commands.store.taught_by(who.name):
            role = Role.TEACHER
        elif known is not None:
            role = known.role if known.left_at is None else None
        elif course.name in who.groups:
            role = Role.STUDENT
        return None if role is None else Place(course=course, role=role, member=member)

    def assignment(self, place: Place, name: str) -> Assignment:
        """Raises NotFound, to students also before it is released."""
        found = self.store.assignment(place.course.name, name)
        if place.role is Role.STUDENT and not found.open:
            raise no_assignment(place.course.name, name)
        return found

    def submission(self, who: Identity, submission_id: int) -> Submission:
        """Raises NotFound, also where it is another student's."""
        found = self.store.submission(submission_id)
        place = self.place(who, found.course)
        if place.role is Role.STUDENT and found.person != who.name:
            raise no_submission(submission_id)
        return found

    def people_of(self, course: str) -> tuple[Member, ...]:
        """Everybody whom the roster knows or JupyterHub has in the group, by name; no teachers."""
        found = (*self.store.members(course), *self.unlisted(course))
        return tuple(sorted(found, key=lambda each: each.person))

    def unlisted(self, course: str, *, fresh: bool = False) -> tuple[Member, ...]:
        """Who is in the group at JupyterHub, and no roster ever said so.

        ``fresh``: as it is at the hub now. Raises Unavailable then, where the hub is away.
        """
        known = {each.person for each in self.store.members(course)}
        try:
            users = self.commands.hub.users(within=0.0 if fresh else _SHOWN_SECONDS)
        except Unavailable:
            if fresh:
                raise
            users = ()
        known.update(self.commands.store.teachers(course))
        return tuple(
            Member(course=course, person=user.name)
            for user in users
            if course in user.groups and not user.admin and user.name not in known
        )

    def member_of(self, course: str, person: str) -> Member:
        """Somebody with a place in the course. Raises NotFound."""
        known = next((m for m in self.people_of(course) if m.person == person), None)
        if known is None or known.left_at is not None:
            raise NotFound(
                f"{person[:80]} is not in {course}.", accepted=f"See: carrel course roster {course}"
            )
        return known

    @property
    def quotas(self) -> QuotaTree:
        return QuotaTree(self.commands.store, self.commands.clock)

    @property
    def people(self) -> People:
        return People(self.commands.store, self.commands.clock, self.commands.hub, None)

    def change(
        self,
        who: Identity,
        action: Action,
        target: str,
        *,
        why: str = "",
        before: Mapping[str, Json] | None = None,
        after: Mapping[str, Json] | None = None,
    ) -> Change:
        return Change(
            at=self.commands.clock(),
            who=who.name,
            action=action,
            target=target,
            why=why,
            before=before or {},
            after=after or {},
        )


def check_open(course: Course) -> None:
    """Raises Conflict: an archived course can only be read."""
    if course.archived_at is not None:
        raise Conflict(
            f"{course.name} is archived: it can only be read.",
            accepted=f"Its teachers bring it back with: carrel course archive {course.name} --undo",
        )
