"""Courses as a whole: made, listed, their people changed, archived and cloned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from ...hub.errors import Conflict, InvalidInput
from ...hub.groups.quotas import check_group_name
from ...hub.messages import units
from ...hub.records.audit import AuditAction
from ...hub.records.identity import Identity, check
from ...hub.records.images import Reference
from ...hub.scheduling.explanation.quota_change import NOTHING_TO_SAY
from ...hub.scheduling.model.snapshot import Group
from ...hub.schemas.admin import ConsequencesOut, GroupIn
from ...hub.schemas.courses import CloneIn, CourseIn, CourseOut, CoursesOut, MemberOut, MembersOut
from ...hub.schemas.images import PinIn
from ..model.records import Course, CourseRole
from ..roster.access import (
    EVERYBODY,
    GRADED_BY,
    TAUGHT_BY,
    CourseAccess,
    CourseMembership,
    check_open,
)
from ..roster.class_list import SHOWN_SECONDS
from ..roster.csv_import import RosterChange, planned, read_roster
from ..roster.service import _UNCHANGED

LOCAL = "local"
"""The one image of an engine without images: the machine itself."""


class CourseAdministration(CourseAccess):
    """The part of ``CourseDesk`` about courses and their people."""

    __slots__ = ()

    # -- making ---------------------------------------------------------------------------

    def create(self, who: Identity, body: CourseIn) -> CourseOut:
        """Everything is checked before anything is made; made again, it goes on where it was.

        Raises:
            Forbidden: for those who are no administrators.
            Conflict: there is such a course.
            InvalidInput, NotFound: of the roster, the image, the quota or the group above.
            Unavailable: JupyterHub, which has the members, is away.
        """
        group, plan, notes = self._wanted_course(who, body)
        self.quotas.put(group, who=who.name)
        teachers = {*self.commands.store.teachers(body.name), *body.teachers}
        self.quotas.set_teachers(body.name, teachers, who=who.name)
        image = self._pinned(who, body.name, body.image)
        self._put(who, self._course(who, body.name, body.title, image))
        # Nobody leaves a group because it becomes a course: that is shown first, by `roster`.
        self._apply(who, replace(plan, leaving=(), former_teachers=()))
        self.commands.notifier.notify()
        return self.show(who, body.name).model_copy(update={"notes": notes})

    def preview(self, who: Identity, body: CourseIn) -> ConsequencesOut:
        """What ``create`` would make, in sentences; refused as it would be, and nothing is made."""
        group, plan, notes = self._wanted_course(who, body)
        known = {each.name for each in self.commands.store.groups()}
        what = (
            "becomes the group of a course" if body.name in known else "is made, group and course"
        )
        most = f"at most {units.devices(group.max_devices)}" if group.max_devices else "no device"
        said = [
            f"{body.name} {what}, with {most}.",
            *(f"{name} teaches it." for name in body.teachers),
            *notes,
            *replace(plan, leaving=(), former_teachers=()).sentences(),
        ]
        return ConsequencesOut(sentences=said, saved=False, changes=True)

    def _notes(self, body: CourseIn, plan: RosterChange) -> Iterator[str]:
        """Mistyped teachers, and whom the roster lacks."""
        users = {user.name for user in self.commands.hub.users(within=SHOWN_SECONDS)}
        for name in body.teachers:
            if name not in users:
                yield f"JupyterHub does not know {name} yet: is the name right?"
        if body.students:
            yield from _staying_on(plan)

    def _wanted_course(
        self, who: Identity, body: CourseIn
    ) -> tuple[Group, RosterChange, list[str]]:
        """Everything is checked, and nothing is changed; the notes say what to look at first."""
        check(who)
        self._check_new(body.name)
        rows = read_roster(body.students) if body.students else ()
        self._check_image(body.name, body.image)
        group = self._group(body)
        consequences = [said for said in self.quotas.preview(group) if said not in NOTHING_TO_SAY]
        known = self.store.members(body.name)
        unlisted = self.unlisted(body.name, known, fresh=bool(rows))
        plan = planned(body.name, rows, known, unlisted=unlisted)
        return group, plan, [*consequences, *self._notes(body, plan)]

    def clone(self, who: Identity, source: str, body: CloneIn) -> CourseOut:
        """A course with the quota, the image and the assignments of another, and no people.

        Its assignments are hidden and never due until they are released with a new due time.
        """
        check(who)
        old = self.store.course(source)
        self._check_new(body.name)
        self._check_image(body.name, old.image)
        known = {group.name: group for group in self.commands.store.groups()}
        if body.name not in known:
            self.quotas.put(replace(known[source], name=body.name), who=who.name)
        self.quotas.set_teachers(body.name, body.teachers, who=who.name)
        image = self._pinned(who, body.name, old.image)
        self._put(who, self._course(who, body.name, body.title or old.title, image))
        for each in self.store.assignments(source):
            copy = replace(each, course=body.name, due=None, hidden=True)
            target = f"{body.name}/{each.name}"
            change = self.change(who, AuditAction.ASSIGNMENT_SET, target, after={"of": source})
            if each.version:
                made = self.store.hand_out(source, each.name)
                self.store.release(copy, replace(made, course=body.name), change=change)
            else:
                self.store.put_assignment(copy, change=change)
        self.commands.notifier.notify()
        return self.show(who, body.name)

    def archive(self, who: Identity, name: str, *, undo: bool = False) -> CourseOut:
        """From now on it can only be read; nothing is deleted, and it can be brought back."""
        before = self.place(who, name, TAUGHT_BY).course
        now = None if undo else self.commands.clock()
        if (before.archived_at is None) != (now is None):
            change = self.change(
                *(who, AuditAction.COURSE_SET, name),
                before={"archived_at": before.archived_at},
                after={"archived_at": now},
            )
            self.store.put_course(replace(before, archived_at=now), change=change)
        return self.show(who, name)

    # -- looking --------------------------------------------------------------------------

    def all(self, who: Identity) -> CoursesOut:
        """Those in which somebody has a role, by name."""
        return CoursesOut(courses=[self._out(place) for place in self.places(who)])

    def show(self, who: Identity, name: str) -> CourseOut:
        return self._out(self.place(who, name, EVERYBODY))

    def members(self, who: Identity, name: str) -> MembersOut:
        """For teachers and graders, by name; also those who have left."""
        place = self.place(who, name, GRADED_BY)
        found = self.people_of(place.course.name)
        return MembersOut(
            teachers=list(self.commands.store.teachers(name)),
            members=[
                MemberOut(
                    person=each.person,
                    full_name=each.full_name,
                    section=each.section,
                    role=str(each.role),
                    left_at=each.left_at,
                )
                for each in found
            ],
        )

    # -- people ---------------------------------------------------------------------------

    def roster(
        self, who: Identity, name: str, students: str, *, dry_run: bool = False
    ) -> ConsequencesOut:
        """Make the class what the roster says; in a dry run only say what that means."""
        place = self.place(who, name, TAUGHT_BY)
        check_open(place.course)
        known = self.store.members(name)
        plan = planned(
            name,
            read_roster(students),
            known,
            unlisted=self.unlisted(name, known, fresh=True),
            teachers=self.commands.store.teachers(name),
        )
        said = list(plan.sentences()) or [_UNCHANGED]
        if not (dry_run or plan.empty):
            self._apply(who, plan)
        return ConsequencesOut(sentences=said, saved=not dry_run, changes=not plan.empty)

    def _apply(self, who: Identity, plan: RosterChange) -> None:
        """JupyterHub first: what is interrupted is still to be done by the same roster."""
        if plan.empty:
            return
        hub, name = self.commands.hub, plan.course
        groups = {user.name: user.groups for user in hub.users()}
        students = {each.person for each in plan.staying if each.role is CourseRole.STUDENT}
        hub.add_users(tuple(sorted(students - set(groups))))
        inside = {person for person, of in groups.items() if name in of}
        gone = {each.person for each in (*plan.leaving, *plan.staying)} - students
        if joining := sorted(students - inside):
            self.people.join(name, joining, who=who.name)
        if leaving := sorted(gone & inside):
            self.people.leave(name, leaving, who=who.name)
        before = set(self.commands.store.teachers(name))
        after = before.union(plan.new_teachers).difference(plan.former_teachers)
        self.quotas.set_teachers(name, after, who=who.name)
        now = self.commands.clock()
        left = tuple(replace(each, left_at=now) for each in plan.leaving)
        change = self.change(
            *(who, AuditAction.ROSTER_SET, name), after={"changes": list(plan.sentences())}
        )
        self.store.put_members(name, (*plan.staying, *left), change=change)

    # -- within ---------------------------------------------------------------------------

    def _check_new(self, name: str) -> None:
        check_group_name(name)
        if self.is_course(name):
            raise Conflict(
                f"There is a course {name} already.", accepted=f"See: carrel course show {name}"
            )

    def _course(self, who: Identity, name: str, title: str, image: str) -> Course:
        return Course(
            name=name,
            title=title.strip(),
            image=image,
            created_at=self.commands.clock(),
            created_by=who.name,
        )

    def _put(self, who: Identity, course: Course) -> None:
        after = {"title": course.title, "image": course.image}
        change = self.change(who, AuditAction.COURSE_SET, course.name, after=after)
        self.store.put_course(course, change=change)

    def _group(self, body: CourseIn) -> Group:
        """As it is asked for; what is left out stays, and a new group has no devices."""
        known = {group.name: group for group in self.commands.store.groups()}
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
        """Raises InvalidInput where no engine has it."""
        if self.commands.backend.images() is not None:
            self.commands.catalogue.choose(course, wanted)
        elif wanted not in {"", LOCAL}:
            raise InvalidInput(
                f"Work runs on this machine itself here: there is no image {wanted[:80]!r}.",
                accepted=f"{LOCAL!r}, which is all that there is, or none.",
                field="image",
            )

    def _pinned(self, who: Identity, course: str, wanted: str) -> str:
        """The image to which the course keeps until the term ends; empty where there are none."""
        if self.commands.backend.images() is None:
            return ""
        asked = Reference.read(wanted) if wanted else Reference(name="")
        assert asked is not None, "it was chosen before"
        body = PinIn(digest=asked.digest, until=self._end_of_term())
        return self.commands.catalogue.pin(who, course, asked.name, body).image

    def _end_of_term(self) -> str:
        """The last day of the term that runs, or of the next one; empty where none is known."""
        today = datetime.fromtimestamp(self.commands.clock(), UTC).date()
        coming = [term for term in self.commands.store.terms() if term.last >= today]
        term = min(coming, key=lambda each: each.first, default=None)
        return "" if term is None else term.last.isoformat()

    def _out(self, place: CourseMembership) -> CourseOut:
        course = place.course
        here = [each for each in self.people_of(course.name) if each.left_at is None]
        assignments = self.store.assignments(course.name)
        student = place.role is CourseRole.STUDENT
        return CourseOut(
            name=course.name,
            title=course.title,
            role=str(place.role),
            image=course.image or LOCAL,
            teachers=list(self.commands.store.teachers(course.name)),
            students=sum(member.role is CourseRole.STUDENT for member in here),
            assignments=sum(each.open or not student for each in assignments),
            archived_at=course.archived_at,
        )


def _staying_on(plan: RosterChange) -> Iterator[str]:
    """Who was in the group before it became a course, and is not on its roster."""
    if plan.leaving:
        names = ", ".join(member.person for member in plan.leaving)
        yield (
            f"In the group already, and not on the roster: {names}. They stay: nobody leaves "
            "because a course is made. The same roster given once more, on the course's page or "
            f"with: carrel course roster {plan.course} FILE, lets them leave after it has asked."
        )
