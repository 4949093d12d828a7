"""Create, list, clone and archive courses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from ...hub.errors import Conflict, InvalidInput
from ...hub.groups.quotas import GroupQuotas, check_group_name
from ...hub.inventory.images import ImageCatalogue
from ...hub.messages import units
from ...hub.records.audit import AuditAction
from ...hub.records.identity import Identity, require_admin
from ...hub.records.images import Reference
from ...hub.runtime.context import Context
from ...hub.scheduling.explanation.quota_change import NO_EFFECT
from ...hub.scheduling.model.snapshot import Group
from ...hub.schemas.admin import ConsequencesOut, GroupIn
from ...hub.schemas.courses import CloneIn, CourseIn, CourseOut, CoursesOut
from ...hub.schemas.images import PinIn
from ..model.records import Course, CourseRole
from ..roster.access import TEACHERS, CourseAccess, CourseMembership
from ..roster.class_list import MAX_AGE_SECONDS, ClassList
from ..roster.csv_import import RosterChange, read_roster, roster_change
from ..roster.service import RosterService

LOCAL = "local"
"""The name for the machine itself, on a backend without images."""


@dataclass(frozen=True, slots=True)
class CourseAdministration:
    """Courses as a whole. Only administrators create and clone them."""

    access: CourseAccess
    class_list: ClassList
    roster: RosterService

    def create(self, who: Identity, body: CourseIn) -> CourseOut:
        """Create a course; everything is checked before anything changes.

        A creation that was interrupted is completed by calling it again.

        Raises:
            Forbidden: the user is not an administrator.
            Conflict: the course exists.
            InvalidInput, NotFound: of the roster, the image, the quota or the parent group.
            Unavailable: JupyterHub, which has the members, does not answer.
        """
        group, roster, notes = self._check_creation(who, body)
        self.quotas.put(group, who=who.name)
        teachers = {*self.context.store.teachers(body.name), *body.teachers}
        self.quotas.set_teachers(body.name, teachers, who=who.name)
        image = self._pinned(who, body.name, body.image)
        self._put(who, self._course(who, body.name, body.title, image))
        # Creating a course removes no members: only a roster update does, which is shown first.
        self.roster.apply(who, replace(roster, leaving=(), former_teachers=()))
        self.context.notifier.notify()
        return self.show(who, body.name).model_copy(update={"notes": notes})

    def preview(self, who: Identity, body: CourseIn) -> ConsequencesOut:
        """List what ``create`` would do, in sentences. Raises what it would raise."""
        group, roster, notes = self._check_creation(who, body)
        known = {each.name for each in self.context.store.groups()}
        what = (
            "becomes the group of a course" if body.name in known else "is made, group and course"
        )
        most = f"at most {units.devices(group.max_devices)}" if group.max_devices else "no device"
        said = [
            f"{body.name} {what}, with {most}.",
            *(f"{name} teaches it." for name in body.teachers),
            *notes,
            *replace(roster, leaving=(), former_teachers=()).sentences(),
        ]
        return ConsequencesOut(sentences=said, saved=False, changes=True)

    def _notes(self, body: CourseIn, roster: RosterChange) -> Iterator[str]:
        """Teachers whose names may be mistyped, and members whom the roster lacks."""
        users = {user.name for user in self.context.hub.users(within=MAX_AGE_SECONDS)}
        for name in body.teachers:
            if name not in users:
                yield f"JupyterHub does not know {name} yet: is the name right?"
        if body.students:
            yield from _staying_on(roster)

    def _check_creation(
        self, who: Identity, body: CourseIn
    ) -> tuple[Group, RosterChange, list[str]]:
        """The group, the roster and notes for the administrator of a course to be created."""
        require_admin(who)
        self._check_new(body.name)
        rows = read_roster(body.students) if body.students else ()
        self._check_image(body.name, body.image)
        group = self._group(body)
        self.quotas.check_unchanged(body.name, who=who.name)
        consequences = [said for said in self.quotas.preview(group) if said not in NO_EFFECT]
        known = self.access.store.members(body.name)
        unlisted = self.class_list.unlisted(body.name, known, fresh=bool(rows))
        roster = roster_change(body.name, rows, known, unlisted=unlisted)
        missing = self.roster.missing_accounts.sentences(row.person for row in rows)
        return group, roster, [*consequences, *self._notes(body, roster), *missing]

    def clone(self, who: Identity, source: str, body: CloneIn) -> CourseOut:
        """Create a course with the quota, image and assignments of another, without members.

        Its assignments are hidden and have no due date until they are released again.
        """
        require_admin(who)
        old = self.access.store.course(source)
        self.access.check_unchanged(who, AuditAction.COURSE_SET, source)
        self._check_new(body.name)
        self._check_image(body.name, old.image)
        known = {group.name: group for group in self.context.store.groups()}
        if body.name not in known:
            self.quotas.put(replace(known[source], name=body.name), who=who.name)
        self.quotas.set_teachers(body.name, body.teachers, who=who.name)
        image = self._pinned(who, body.name, old.image)
        self._put(who, self._course(who, body.name, body.title or old.title, image))
        for each in self.access.store.assignments(source):
            copy = replace(each, course=body.name, due=None, hidden=True)
            target = f"{body.name}/{each.name}"
            change = self.access.audit_entry(
                who, AuditAction.ASSIGNMENT_SET, target, after={"of": source}
            )
            if each.version:
                made = self.access.store.released_version(source, each.name)
                self.access.store.release(copy, replace(made, course=body.name), change=change)
            else:
                self.access.store.put_assignment(copy, change=change)
        self.context.notifier.notify()
        return self.show(who, body.name)

    def archive(self, who: Identity, name: str, *, undo: bool = False) -> CourseOut:
        """Make a course read-only, or undo that; nothing is deleted."""
        before = self.access.membership(who, name, TEACHERS).course
        self.access.check_unchanged(who, AuditAction.COURSE_SET, name)
        now = None if undo else self.context.clock()
        if (before.archived_at is None) != (now is None):
            change = self.access.audit_entry(
                *(who, AuditAction.COURSE_SET, name),
                before={"archived_at": before.archived_at},
                after={"archived_at": now},
            )
            self.access.store.put_course(replace(before, archived_at=now), change=change)
        return self.show(who, name)

    def courses(self, who: Identity) -> CoursesOut:
        """The courses in which the user has a role, by name."""
        return CoursesOut(courses=[self._out(each) for each in self.access.memberships(who)])

    def show(self, who: Identity, name: str) -> CourseOut:
        """One course, for its members."""
        return self._out(self.access.membership(who, name))

    # -- internal -------------------------------------------------------------------------

    @property
    def context(self) -> Context:
        return self.access.context

    @property
    def quotas(self) -> GroupQuotas:
        return GroupQuotas(self.context.store, self.context.clock)

    def _check_new(self, name: str) -> None:
        check_group_name(name)
        if self.access.is_course(name):
            raise Conflict(
                f"There is a course {name} already.", accepted=f"See: carrel course show {name}"
            )

    def _course(self, who: Identity, name: str, title: str, image: str) -> Course:
        return Course(
            name=name,
            title=title.strip(),
            image=image,
            created_at=self.context.clock(),
            created_by=who.name,
        )

    def _put(self, who: Identity, course: Course) -> None:
        after = {"title": course.title, "image": course.image}
        change = self.access.audit_entry(who, AuditAction.COURSE_SET, course.name, after=after)
        self.access.store.put_course(course, change=change)

    def _group(self, body: CourseIn) -> Group:
        """The group as the body asks for it; fields left out keep their value.

        A new group has no devices.
        """
        known = {group.name: group for group in self.context.store.groups()}
        before = known.get(body.name) or Group(name=body.name)
        guaranteed = before.guaranteed if body.guaranteed is None else body.guaranteed
        most = max(before.max_devices, guaranteed) if body.max_devices is None else body.max_devices
        each = body.max_devices_per_user
        if each is None:
            each = before.max_devices_per_user if body.name in known else min(1, most)
        if guaranteed > most:
            raise InvalidInput(
                f"{guaranteed} devices are guaranteed, and {most} are the most.",
                accepted="A guarantee up to the maximum.",
                field="guaranteed",
            )
        wanted = GroupIn(
            parent=body.parent or before.parent,
            max_devices=most,
            max_devices_per_user=each,
            max_seconds=before.max_seconds,
            guaranteed=guaranteed,
        )
        if body.budget is not None:
            wanted = wanted.model_copy(update={"budget": body.budget})
        return self.quotas.wanted(body.name, wanted)

    def _check_image(self, course: str, wanted: str) -> None:
        """Raises InvalidInput where no engine has the image."""
        if self.context.backend.images() is not None:
            ImageCatalogue.of(self.context).choose(course, wanted)
        elif wanted not in {"", LOCAL}:
            raise InvalidInput(
                f"Work runs on this machine itself here: there is no image {wanted[:80]!r}.",
                accepted=f"{LOCAL!r}, which is all that there is, or none.",
                field="image",
            )

    def _pinned(self, who: Identity, course: str, wanted: str) -> str:
        """Pin the course's image until the term ends; empty on a backend without images."""
        if self.context.backend.images() is None:
            return ""
        asked = Reference.read(wanted) if wanted else Reference(name="")
        assert asked is not None, "checked before"
        body = PinIn(digest=asked.digest, until=self._end_of_term())
        return ImageCatalogue.of(self.context).pin(who, course, asked.name, body).image

    def _end_of_term(self) -> str:
        """The last day of the current or the next term; empty where none is known."""
        today = datetime.fromtimestamp(self.context.clock(), UTC).date()
        coming = [term for term in self.context.store.terms() if term.last >= today]
        term = min(coming, key=lambda each: each.first, default=None)
        return "" if term is None else term.last.isoformat()

    def _out(self, membership: CourseMembership) -> CourseOut:
        course = membership.course
        members = [each for each in self.class_list.members(course.name) if each.left_at is None]
        assignments = self.access.store.assignments(course.name)
        student = membership.role is CourseRole.STUDENT
        return CourseOut(
            name=course.name,
            title=course.title,
            role=str(membership.role),
            image=course.image or LOCAL,
            teachers=list(self.context.store.teachers(course.name)),
            students=sum(member.role is CourseRole.STUDENT for member in members),
            assignments=sum(each.open or not student for each in assignments),
            archived_at=course.archived_at,
        )


def _staying_on(roster: RosterChange) -> Iterator[str]:
    """Name the members of the group who are not on the roster of the course made of it."""
    if roster.leaving:
        names = ", ".join(member.person for member in roster.leaving)
        yield (
            f"In the group already, and not on the roster: {names}. They stay: creating a "
            "course removes no members. The same roster given once more, on the course's page or "
            f"with: carrel course roster {roster.course} FILE, lets them leave after it has asked."
        )
