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

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path

from ...hub.errors import Conflict, Forbidden, NotFound, Unavailable
from ...hub.files.filenames import safe_name
from ...hub.files.safe_fs import Owner
from ...hub.groups.quotas import GroupQuotas
from ...hub.groups.users import Users
from ...hub.records.audit import AuditAction, AuditEntry
from ...hub.records.identity import Identity
from ...hub.records.images import Reference
from ...hub.records.json_value import Json
from ...hub.runtime.context import Context
from ...hub.scheduling.quota import tree
from ..deadlines.shifts import DeadlineShifts
from ..gradebook.reader import GradebookPage, pages
from ..model.interfaces import Blobs, CourseStore
from ..model.records import Assignment, Course, CourseRole, Member, Submission
from ..sandbox.interface import SandboxFactory
from ..store.not_found import no_assignment, no_course, no_submission
from .class_list import SHOWN_SECONDS

TAUGHT_BY = (CourseRole.TEACHER,)
GRADED_BY = (CourseRole.TEACHER, CourseRole.GRADER)
EVERYBODY = tuple(CourseRole)


@dataclass(frozen=True, slots=True, kw_only=True)
class CourseMembership:
    """A course with the role in which somebody is there."""

    course: Course
    role: CourseRole
    member: Member


@dataclass(frozen=True, slots=True)
class CourseAccess:
    """Base of the parts of ``CourseDesk``.

    Attributes:
        cages: in which a release is tried; None where there are none.
        folder: of all courses, with nbgrader's folders and gradebook of each; None without.
        owner: whose those folders are in sessions, where that is not the service.
    """

    commands: Context
    store: CourseStore
    blobs: Blobs
    cages: SandboxFactory | None = None
    folder: Path | None = None
    owner: Owner | None = None

    def place(
        self, who: Identity, name: str, roles: Collection[CourseRole] = EVERYBODY
    ) -> CourseMembership:
        """Raises NotFound for strangers, and Forbidden in another role than these."""
        mine, taught = self._standing(who)
        found = _place(who, self.store.course(name), mine, taught)
        if found is None:
            raise no_course(name)
        if found.role not in roles:
            raise Forbidden(
                f"You are a {found.role} of {name}.",
                accepted=f"This is for its {' and '.join(f'{role}s' for role in roles)}.",
            )
        return found

    def places(self, who: Identity) -> list[CourseMembership]:
        """All courses in which somebody has a role, by name."""
        mine, taught = self._standing(who)
        found = (_place(who, course, mine, taught) for course in self.store.courses())
        return [each for each in found if each is not None]

    def is_course(self, name: str) -> bool:
        """Or a plain group; for what is shown."""
        return any(course.name == name for course in self.store.courses())

    def grades_somewhere(self, who: Identity) -> bool:
        """Whether some roster has them as a grader; for what is shown."""
        return any(
            each.role is CourseRole.GRADER and each.left_at is None
            for each in self.store.memberships(who.name)
        )

    def _standing(self, who: Identity) -> tuple[Collection[Member], Collection[str]]:
        """Where the rosters have somebody, and what they teach."""
        return self.store.memberships(who.name), self.commands.store.taught_by(who.name)

    def assignment(self, place: CourseMembership, name: str) -> Assignment:
        """Raises NotFound, to students also before it is released."""
        found = self.store.assignment(place.course.name, name)
        if place.role is CourseRole.STUDENT and not found.open:
            raise no_assignment(place.course.name, name)
        return found

    def submission(self, who: Identity, submission_id: int) -> Submission:
        """Raises NotFound, also where it is another student's."""
        found = self.store.submission(submission_id)
        place = self.place(who, found.course)
        if place.role is CourseRole.STUDENT and found.person != who.name:
            raise no_submission(submission_id)
        return found

    def image_of(self, course: Course) -> str:
        """Digest of the image in which its sessions start, and in which it is graded.

        Empty where work runs in no images.

        Raises:
            InvalidInput: no engine has it any more.
            Unavailable: no engine has ever said what it has.
        """
        if self.commands.backend.images() is None:
            return ""
        named = Reference.read(course.image)
        found = self.commands.catalogue.choose(course.name, named.name if named else "")
        return found.digest if found else ""

    def longest(self, course: str) -> float:
        """Seconds that one request of the course may ask for."""
        most = tree.limits(tree.GroupTree(self.commands.store.groups()), course)
        return most.max_seconds if most else inf

    def people_of(self, course: str) -> tuple[Member, ...]:
        """Everybody whom the roster knows or JupyterHub has in the group, by name; no teachers."""
        listed = self.store.members(course)
        found = (*listed, *self.unlisted(course, listed))
        return tuple(sorted(found, key=lambda each: each.person))

    def called(self, course: str) -> Callable[[str], Member]:
        """Gives somebody as the roster has them; whom it lacks is a plain student."""
        known = {each.person: each for each in self.store.members(course)}
        return lambda person: known.get(person) or Member(course=course, person=person)

    def moved_in(self, course: str) -> DeadlineShifts:
        return DeadlineShifts(
            extensions=self.store.extensions(course), outages=self.store.outages()
        )

    def unlisted(
        self, course: str, listed: Iterable[Member], *, fresh: bool = False
    ) -> tuple[Member, ...]:
        """Who is in the group at JupyterHub, and no roster ever said so.

        ``fresh``: as it is at the hub now. Raises Unavailable then, where the hub is away.
        """
        known = {each.person for each in listed}
        try:
            users = self.commands.hub.users(within=0.0 if fresh else SHOWN_SECONDS)
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

    def folder_of(self, course: str) -> Path | None:
        """Of nbgrader's folders and gradebook; None where nothing is graded."""
        return None if self.folder is None else self.folder / safe_name(course)

    def by_hand(self, course: str, assignment: str) -> Mapping[str, GradebookPage]:
        """What the gradebook says, by student. Raises Unavailable."""
        folder = self.folder_of(course)
        return {} if folder is None else pages(folder, assignment)

    @property
    def quotas(self) -> GroupQuotas:
        return GroupQuotas(self.commands.store, self.commands.clock)

    @property
    def people(self) -> Users:
        return Users(self.commands.store, self.commands.clock, self.commands.hub, None)

    def change(
        self,
        who: Identity,
        action: AuditAction,
        target: str,
        *,
        why: str = "",
        before: Mapping[str, Json] | None = None,
        after: Mapping[str, Json] | None = None,
    ) -> AuditEntry:
        return AuditEntry(
            at=self.commands.clock(),
            who=who.name,
            action=action,
            target=target,
            why=why,
            before=before or {},
            after=after or {},
        )


def _place(
    who: Identity, course: Course, mine: Collection[Member], taught: Collection[str]
) -> CourseMembership | None:
    known = next((each for each in mine if each.course == course.name), None)
    member = known or Member(course=course.name, person=who.name)
    role: CourseRole | None = None
    if who.admin or course.name in taught:
        role = CourseRole.TEACHER
    elif known is not None:
        role = known.role if known.left_at is None else None
    elif course.name in who.groups:
        role = CourseRole.STUDENT
    return None if role is None else CourseMembership(course=course, role=role, member=member)


def check_open(course: Course) -> None:
    """Raises Conflict: an archived course can only be read."""
    if course.archived_at is not None:
        raise Conflict(
            f"{course.name} is archived: it can only be read.",
            accepted=f"Its teachers bring it back with: carrel course archive {course.name} --undo",
        )
