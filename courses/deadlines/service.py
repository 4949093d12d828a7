"""Give and withdraw extensions, and record outages."""

from __future__ import annotations

from dataclasses import dataclass

from ...hub.errors import InvalidInput, NotFound
from ...hub.messages import units
from ...hub.records.audit import AuditAction
from ...hub.records.identity import Identity, require_admin
from ...hub.schemas.admin import ConsequencesOut
from ...hub.schemas.courses import (
    ExtensionIn,
    ExtensionOut,
    ExtensionsOut,
    OutageIn,
    OutageOut,
    OutagesOut,
)
from ..model.records import Assignment, Extension, Outage
from ..roster.access import GRADERS, TEACHERS, CourseAccess, check_not_archived
from ..roster.class_list import ClassList
from . import rules as deadline_rules

LONGEST_OUTAGE = 31 * 86400.0


@dataclass(frozen=True, slots=True)
class DeadlineService:
    """Extensions of students and sections, and outages that move due dates."""

    access: CourseAccess
    class_list: ClassList

    def extensions(self, who: Identity, course: str, name: str | None = None) -> ExtensionsOut:
        """The extensions for all assignments or for one, oldest first. For teachers and graders.

        Raises:
            NotFound: there is no such assignment.
        """
        membership = self.access.membership(who, course, GRADERS)
        if name is not None:
            self.access.assignment(membership, name)
        return ExtensionsOut(
            extensions=[
                ExtensionOut(
                    assignment=each.assignment,
                    person=each.person,
                    section=each.section,
                    seconds=each.seconds,
                    given_at=each.given_at,
                    given_by=each.given_by,
                    why=each.why,
                )
                for each in self.access.store.extensions(course)
                if name in (None, each.assignment)
            ]
        )

    def extend(self, who: Identity, course: str, name: str, body: ExtensionIn) -> ConsequencesOut:
        """Give a student or a section more time; several extensions add up.

        Raises:
            InvalidInput: it names neither or both, or the assignment has no due date.
            NotFound: the course has no such student or section.
        """
        assignment = self._assignment(who, course, name)
        _check_one(body.person, body.section)
        if assignment.due is None:
            raise InvalidInput(f"{name} is never due.", accepted="An assignment with a due date.")
        if body.person:
            self.class_list.member(course, body.person)
        else:
            self._check_section(course, body.section)
        extension = Extension(
            course=course,
            assignment=name,
            person=body.person,
            section=body.section,
            seconds=body.seconds,
            given_at=self.access.context.clock(),
            given_by=who.name,
            why=body.why.strip(),
        )
        whom = body.person or f"Section {body.section}"
        change = self.access.audit_entry(
            *(who, AuditAction.EXTEND, f"{course}/{name}"),
            why=extension.why,
            after={"for": whom, "seconds": body.seconds},
        )
        self.access.store.extend(extension, change=change)
        more = units.duration(body.seconds)
        return ConsequencesOut(sentences=[f"{whom} has {more} more for {name}."], saved=True)

    def withdraw_extensions(
        self, who: Identity, course: str, name: str, *, person: str = "", section: str = ""
    ) -> ConsequencesOut:
        """Withdraw all extensions of a student or of a section.

        Lateness is computed when it is asked for, so that it changes with them.

        Raises:
            InvalidInput: it names neither or both.
            NotFound: they have no extension.
        """
        self._assignment(who, course, name)
        _check_one(person, section)
        whom = person or f"Section {section}"
        self.access.check_unchanged(
            *(who, AuditAction.EXTEND, f"{course}/{name}"), before={"for": whom}
        )
        seconds = sum(
            each.seconds
            for each in self.access.store.extensions(course)
            if (each.assignment, each.person, each.section) == (name, person, section)
        )
        if not seconds:
            raise NotFound(
                f"{whom[:80]} has no extension for {name}.",
                accepted=f"See: carrel course extend {name}",
            )
        change = self.access.audit_entry(
            *(who, AuditAction.EXTEND, f"{course}/{name}"),
            before={"for": whom, "seconds": seconds},
            after={"for": whom, "seconds": 0},
        )
        whose = {"person": person, "section": section}
        self.access.store.remove_extensions(course, name, **whose, change=change)
        said = f"{whom} had {units.duration(seconds)} more for {name}: taken back."
        return ConsequencesOut(sentences=[said], saved=True)

    def record_outage(self, who: Identity, body: OutageIn) -> ConsequencesOut:
        """Move every due date in an outage, or within a day after it, by its length.

        Raises:
            Forbidden: the user is not an administrator.
            InvalidInput: it ends before it begins, or is longer than a month.
        """
        require_admin(who)
        if not body.starts_at < body.ends_at <= body.starts_at + LONGEST_OUTAGE:
            raise InvalidInput(
                "An outage ends after it begins, within 31 days.",
                accepted="Two moments in their order.",
                field="ends_at",
            )
        if body.course:
            self.access.store.course(body.course)
        outage = Outage(
            starts_at=body.starts_at,
            ends_at=body.ends_at,
            course=body.course,
            why=body.why.strip(),
            recorded_at=self.access.context.clock(),
            recorded_by=who.name,
        )
        said = self._effects(outage)
        change = self.access.audit_entry(
            *(who, AuditAction.OUTAGE, body.course),
            why=outage.why,
            after={"starts_at": outage.starts_at, "ends_at": outage.ends_at},
        )
        self.access.store.add_outage(outage, change=change)
        return ConsequencesOut(sentences=said, saved=True, changes=True)

    def outages(self, who: Identity) -> OutagesOut:
        """The outages of all courses and of the user's own, in the order of their recording."""
        mine = {"", *(each.course.name for each in self.access.memberships(who))}
        return OutagesOut(
            outages=[
                OutageOut(
                    starts_at=each.starts_at,
                    ends_at=each.ends_at,
                    course=each.course,
                    why=each.why,
                    recorded_by=each.recorded_by,
                )
                for each in self.access.store.outages()
                if each.course in mine
            ]
        )

    # -- internal -------------------------------------------------------------------------

    def _assignment(self, who: Identity, course: str, name: str) -> Assignment:
        """An assignment whose deadline the user may change."""
        membership = self.access.membership(who, course, TEACHERS)
        check_not_archived(membership.course)
        return self.access.assignment(membership, name)

    def _check_section(self, course: str, section: str) -> None:
        known = sorted({m.section for m in self.access.store.members(course) if m.section})
        if section not in known:
            raise InvalidInput(
                f"{course} has no section {section[:80]!r}.",
                accepted=f"Sections: {', '.join(known) or 'none yet'}.",
                field="section",
            )

    def _effects(self, outage: Outage) -> list[str]:
        """The assignments that are due later for their class, in sentences."""
        store = self.access.store
        before = store.outages()
        said = []
        for course in store.courses():
            for each in store.assignments(course.name):
                if each.due is None or course.archived_at is not None:
                    continue
                was = deadline_rules.after_outages(each.due, course.name, before)
                now = deadline_rules.after_outages(each.due, course.name, (*before, outage))
                if now > was:
                    more = units.duration(now - was)
                    said.append(f"{each.name} of {course.name} is due {more} later.")
        return said or ["It moves no due date of a class; extended ones may move."]


def _check_one(person: str, section: str) -> None:
    if bool(person) == bool(section):
        raise InvalidInput(
            "An extension is for one person or for one section.",
            accepted="One of the two.",
            field="person",
        )
