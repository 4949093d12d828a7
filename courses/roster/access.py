"""Decide who may do what in a course.

| role | may |
| --- | --- |
| administrator | everything, and alone: create and clone courses, record outages |
| teacher | release, extend, choose, change the roster, archive; sees the whole course |
| grader | see everything that was submitted |
| student | fetch and submit; sees only their own work |

To other users a course does not exist. Its teachers are those of the group. Its students are those
on the roster, and the members of the JupyterHub group who have not left the course.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import inf

from ...hub.errors import Conflict, Forbidden, InvalidInput, NotFound
from ...hub.inventory.images import ImageCatalogue
from ...hub.records.audit import AuditAction, AuditEntry
from ...hub.records.identity import Identity
from ...hub.records.images import Reference
from ...hub.records.json_value import Json
from ...hub.runtime.context import Context
from ...hub.scheduling.quota import tree
from ..model.interfaces import CourseStore
from ..model.records import Assignment, Course, CourseRole, Member, Submission
from ..store.not_found import no_assignment, no_course, no_submission

TEACHERS = (CourseRole.TEACHER,)
GRADERS = (CourseRole.TEACHER, CourseRole.GRADER)
ALL_ROLES = tuple(CourseRole)


@dataclass(frozen=True, slots=True, kw_only=True)
class CourseMembership:
    """A course, and the role of one user in it."""

    course: Course
    role: CourseRole
    member: Member


@dataclass(frozen=True, slots=True)
class CourseAccess:
    """Checks roles, and finds assignments and submissions that a user may see."""

    context: Context
    store: CourseStore

    def membership(
        self, who: Identity, course: str, roles: Collection[CourseRole] = ALL_ROLES
    ) -> CourseMembership:
        """The user's membership in a course.

        Raises:
            NotFound: there is no such course, or they have no role in it.
            Forbidden: their role is not one of ``roles``.
        """
        listed, taught = self._roles_of(who)
        found = _membership(who, self.store.course(course), listed, taught)
        if found is None:
            raise no_course(course)
        if found.role not in roles:
            raise Forbidden(
                f"You are a {found.role} of {course}.",
                accepted=f"This is for its {' and '.join(f'{role}s' for role in roles)}.",
            )
        return found

    def submitter(self, who: Identity, course: str) -> CourseMembership:
        """The membership of a student who submits.

        Raises:
            NotFound: there is no such course, or they have no role in it.
            Forbidden: they are no student of it.
            Conflict: the course is archived.
        """
        membership = self.membership(who, course)
        if membership.role is not CourseRole.STUDENT:
            raise Forbidden(
                f"You are a {membership.role} of {course}.", accepted="Its students submit."
            )
        check_not_archived(membership.course)
        return membership

    def memberships(self, who: Identity) -> list[CourseMembership]:
        """The user's memberships in all courses, by name."""
        listed, taught = self._roles_of(who)
        found = (_membership(who, course, listed, taught) for course in self.store.courses())
        return [each for each in found if each is not None]

    def is_course(self, group: str) -> bool:
        """Whether a group is a course. Decides what pages show, not what is allowed."""
        return any(course.name == group for course in self.store.courses())

    def course_names(self) -> frozenset[str]:
        """Return the names of all courses. The caller checks what the user may see."""
        return frozenset(course.name for course in self.store.courses())

    def grades_somewhere(self, who: Identity) -> bool:
        """Whether the user is a grader of any course. Decides what pages show."""
        return any(
            each.role is CourseRole.GRADER and each.left_at is None
            for each in self.store.memberships(who.name)
        )

    def _roles_of(self, who: Identity) -> tuple[Collection[Member], Collection[str]]:
        """The user's entries on rosters, and the groups that they teach."""
        return self.store.memberships(who.name), self.context.store.taught_by(who.name)

    def assignment(self, membership: CourseMembership, name: str) -> Assignment:
        """Raises NotFound; to students, unreleased assignments do not exist."""
        found = self.store.assignment(membership.course.name, name)
        if membership.role is CourseRole.STUDENT and not found.open:
            raise no_assignment(membership.course.name, name)
        return found

    def submission(self, who: Identity, submission_id: int) -> Submission:
        """Raises NotFound; to students, submissions of other students do not exist."""
        found = self.store.submission(submission_id)
        membership = self.membership(who, found.course)
        if membership.role is CourseRole.STUDENT and found.person != who.name:
            raise no_submission(submission_id)
        return found

    def submission_of(
        self, who: Identity, course: str, assignment: str, submission_id: int
    ) -> Submission:
        """A submission to this assignment, for addresses that name both. Raises NotFound."""
        found = self.submission(who, submission_id)
        if (found.course, found.assignment) != (course, assignment):
            raise no_submission(submission_id)
        return found

    def last_submission(self, person: str, assignment: Assignment) -> Submission:
        """Return the last submission of a student, for a check. Raises InvalidInput without one."""
        found = self.store.submissions(assignment.course, assignment.name, person)
        if not found:
            raise InvalidInput(
                "There is nothing to check: you sent no files and have submitted none.",
                accepted="Your notebook.",
                field="files",
            )
        return max(found, key=lambda each: each.number)

    def image_of(self, course: Course) -> str:
        """Digest of the image in which the course's sessions start and its work is graded.

        Empty on a backend without images.

        Raises:
            InvalidInput: no engine has the image any more.
            Unavailable: no engine has listed its images yet.
        """
        if self.context.backend.images() is None:
            return ""
        named = Reference.read(course.image)
        found = ImageCatalogue.of(self.context).choose(course.name, named.name if named else "")
        return found.digest if found else ""

    def max_seconds(self, course: str) -> float:
        """The longest time limit that one request of the course may have."""
        limits = tree.limits(tree.GroupTree(self.context.store.groups()), course)
        return limits.max_seconds if limits else inf

    def request_owner(self, course: str, preferred: str) -> str:
        """Return who owns a request that the service submits for a course.

        That is ``preferred``, who has allowed such requests, or else a present teacher; in a course
        without teachers, an administrator who is ``preferred`` or has created it.

        Raises:
            Conflict: there is none of them any more.
            Unavailable: JupyterHub does not answer.
        """
        teachers = self.context.store.teachers(course)
        if teachers:
            return preferred if preferred in teachers else teachers[0]
        for name in (preferred, self.store.course(course).created_by):
            with suppress(NotFound):
                if self.context.hub.user(name).admin:
                    return name
        raise Conflict(
            f"{course} has no teacher to whom the request could belong.",
            accepted="Ask an administrator to name a teacher.",
        )

    def check_unchanged(
        self,
        who: Identity,
        action: AuditAction,
        target: str,
        *,
        before: Mapping[str, Json] | None = None,
    ) -> None:
        """Raise ChangedMeanwhile if a form or call is older than what it changes.

        The store checks it once more when it saves; this is for changes with other steps before
        that, and for previews.
        """
        change = self.audit_entry(who, action, target, before=before)
        self.context.store.check_unchanged(change)

    def audit_entry(
        self,
        who: Identity,
        action: AuditAction,
        target: str,
        *,
        why: str = "",
        before: Mapping[str, Json] | None = None,
        after: Mapping[str, Json] | None = None,
    ) -> AuditEntry:
        """An entry for the audit log, of this moment."""
        return AuditEntry(
            at=self.context.clock(),
            who=who.name,
            action=action,
            target=target,
            why=why,
            before=before or {},
            after=after or {},
        )


def _membership(
    who: Identity, course: Course, listed: Collection[Member], taught: Collection[str]
) -> CourseMembership | None:
    known = next((each for each in listed if each.course == course.name), None)
    member = known or Member(course=course.name, person=who.name)
    role: CourseRole | None = None
    if who.admin or course.name in taught:
        role = CourseRole.TEACHER
    elif known is not None:
        role = known.role if known.left_at is None else None
    elif course.name in who.groups:
        role = CourseRole.STUDENT
    return None if role is None else CourseMembership(course=course, role=role, member=member)


def check_not_archived(course: Course) -> None:
    """Raises Conflict where the course is archived, and so read-only."""
    if course.archived_at is not None:
        raise Conflict(
            f"{course.name} is archived: it can only be read.",
            accepted=f"Its teachers bring it back with: carrel course archive {course.name} --undo",
        )
