"""Assignments: released, listed and fetched, and the time that people have for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...hub.errors import InvalidInput, NotFound, OverMaximum
from ...hub.messages import units
from ...hub.records.audit import AuditAction
from ...hub.records.identity import Identity, check
from ...hub.scheduling.quota.tree import may_hold
from ...hub.schemas.admin import ConsequencesOut
from ...hub.schemas.courses import (
    ExtensionIn,
    ExtensionOut,
    ExtensionsOut,
    HandOutOut,
    OutageIn,
    OutageOut,
    OutagesOut,
    ReleasedOut,
    ReleaseIn,
)
from ..deadlines import rules as deadline_rules
from ..deadlines.service import LONGEST_OUTAGE, _check_whose
from ..files.bundle import FileBundle
from ..files.transfer import bundle_of_body, content_out, ref_out, store_bundle
from ..model.records import Assignment, CourseRole, Extension, Fetched, HandOut, Outage
from ..releases.graded_cells import report
from ..releases.release import PreparedRelease, check_assignment_name, made_ready
from ..roster.access import GRADED_BY, TAUGHT_BY, CourseAccess, check_open


class AssignmentService(CourseAccess):
    """The part of ``CourseDesk`` about what teachers hand out."""

    __slots__ = ()

    def release(
        self,
        who: Identity,
        course: str,
        name: str,
        body: ReleaseIn,
        *,
        stripped: FileBundle | None = None,
    ) -> ReleasedOut:
        """Hand out a version, or release the one that is there with another due time.

        Nothing is stored unless all of it is accepted; the same files again are no new version.

        Args:
            stripped: what students get, where the teacher's own nbgrader has made it.

        Raises:
            InvalidInput, TooLarge: of the files, of nbgrader's cells in them, or of the rules.
            OverMaximum: the course never has so many devices.
        """
        place = self.place(who, course, TAUGHT_BY)
        check_open(place.course)
        check_assignment_name(name)
        known = {each.name: each for each in self.store.assignments(course)}
        assignment = self._wanted(known.get(name) or Assignment(course=course, name=name), body)
        ready = self._ready(assignment, bundle_of_body(body), stripped)
        warnings: tuple[str, ...] = ()
        if ready is None:
            made = self.store.hand_out(course, name)
        else:
            warnings = ready.warnings
            made = HandOut(
                course=course,
                assignment=name,
                version=0,
                files=store_bundle(self.blobs, ready.files),
                source=store_bundle(self.blobs, ready.source),
                released_at=self.commands.clock(),
                released_by=who.name,
                tried=ready.tried,
            )
        after = {
            "due": assignment.due,
            "late": deadline_rules.late_text(assignment.late),
            "sha256": made.files.sha256,
        }
        change = self.change(who, AuditAction.ASSIGNMENT_RELEASE, f"{course}/{name}", after=after)
        made = self.store.release(assignment, made, change=change)
        return self._released(assignment, made, warnings)

    def released(self, who: Identity, course: str, name: str) -> ReleasedOut:
        """For teachers and graders: the newest version, with what was found before its release.

        Raises:
            NotFound: it is not released.
        """
        place = self.place(who, course, GRADED_BY)
        assignment = self.assignment(place, name)
        return self._released(assignment, self.store.hand_out(course, name), ())

    def _released(
        self, assignment: Assignment, made: HandOut, warnings: Sequence[str]
    ) -> ReleasedOut:
        return ReleasedOut(
            course=made.course,
            assignment=made.assignment,
            version=made.version,
            released_at=made.released_at,
            sha256=made.files.sha256,
            files=[ref_out(file) for file in made.files.files],
            due=assignment.due,
            zone=assignment.zone,
            late_rule=deadline_rules.late_sentence(assignment.late),
            warnings=list(warnings),
            report=report(self.blobs, made),
        )

    def _ready(
        self, assignment: Assignment, source: FileBundle | None, stripped: FileBundle | None
    ) -> PreparedRelease | None:
        """``stripped``: made by nbgrader itself, and handed out as it is."""
        if source is None:
            return None if stripped is None else PreparedRelease(files=stripped, source=stripped)
        seconds = assignment.seconds
        image = self.image_of(self.store.course(assignment.course))
        ready = made_ready(
            *(assignment.name, source),
            cages=self.cages,
            course=assignment.course,
            image=image,
            seconds=seconds,
        )
        return ready if stripped is None else replace(ready, files=stripped)

    def _wanted(self, before: Assignment, body: ReleaseIn) -> Assignment:
        after = replace(before, hidden=False)
        if body.due is not None:
            at, zone = (
                deadline_rules.read_due(body.due) if body.due.strip() else (None, before.zone)
            )
            if at is not None and at <= self.commands.clock() and at != before.due:
                raise InvalidInput(
                    f"{body.due.strip()[:80]} is over.", accepted="A later moment.", field="due"
                )
            after = replace(after, due=at, zone=zone)
        if body.late is not None:
            after = replace(after, late=deadline_rules.read_late(body.late))
        if body.devices is not None:
            most = may_hold(self.commands.store.group(before.course))
            if body.devices > most:
                raise OverMaximum(
                    f"{before.course} never has {units.devices(body.devices)}.",
                    accepted=f"At most {most} for one submission.",
                    field="devices",
                )
            after = replace(after, devices=body.devices)
        return after if body.seconds is None else replace(after, seconds=body.seconds)

    def withdraw(self, who: Identity, course: str, name: str) -> None:
        """Students do not see it any more, until it is released again; nothing is deleted."""
        place = self.place(who, course, TAUGHT_BY)
        check_open(place.course)
        assignment = replace(self.assignment(place, name), hidden=True)
        change = self.change(
            who, AuditAction.ASSIGNMENT_SET, f"{course}/{name}", after={"hidden": True}
        )
        self.store.put_assignment(assignment, change=change)

    def hand_out(
        self, who: Identity, course: str, name: str, *, version: int | None = None
    ) -> HandOutOut:
        """The files of a version; that a student has it is kept.

        Raises:
            NotFound: it is not released.
        """
        place = self.place(who, course)
        assignment = self.assignment(place, name)
        made = self.store.hand_out(course, name, version)
        if place.role is CourseRole.STUDENT and place.course.archived_at is None:
            now = self.commands.clock()
            fetched = Fetched(
                course=course,
                assignment=assignment.name,
                person=who.name,
                version=made.version,
                at=now,
            )
            self.store.note_fetched(fetched)
        return HandOutOut(
            course=course,
            assignment=name,
            version=made.version,
            released_at=made.released_at,
            released_by=made.released_by,
            sha256=made.files.sha256,
            files=[content_out(self.blobs, file) for file in made.files.files],
        )

    # -- time -----------------------------------------------------------------------------

    def extensions(self, who: Identity, course: str, name: str | None = None) -> ExtensionsOut:
        """For teachers and graders: of all assignments or of one, in the order as given.

        Raises:
            NotFound: there is no such assignment.
        """
        place = self.place(who, course, GRADED_BY)
        if name is not None:
            self.assignment(place, name)
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
                for each in self.store.extensions(course)
                if name in (None, each.assignment)
            ]
        )

    def extend(self, who: Identity, course: str, name: str, body: ExtensionIn) -> ConsequencesOut:
        """More time for a person or a section; several add up.

        Raises:
            InvalidInput: it is for nobody or for both, or the assignment is never due.
            NotFound: there is no such person or section in the course.
        """
        place = self.place(who, course, TAUGHT_BY)
        check_open(place.course)
        assignment = self.assignment(place, name)
        _check_whose(body.person, body.section)
        if assignment.due is None:
            raise InvalidInput(f"{name} is never due.", accepted="An assignment with a due time.")
        if body.person:
            self.member_of(course, body.person)
        else:
            self._check_section(course, body.section)
        extension = Extension(
            course=course,
            assignment=name,
            person=body.person,
            section=body.section,
            seconds=body.seconds,
            given_at=self.commands.clock(),
            given_by=who.name,
            why=body.why.strip(),
        )
        whom = body.person or f"Section {body.section}"
        change = self.change(
            *(who, AuditAction.EXTEND, f"{course}/{name}"),
            why=extension.why,
            after={"for": whom, "seconds": body.seconds},
        )
        self.store.extend(extension, change=change)
        more = units.duration(body.seconds)
        said = f"{whom} has {more} more for {name}."
        return ConsequencesOut(sentences=[said], saved=True)

    def take_time_back(
        self, who: Identity, course: str, name: str, *, person: str = "", section: str = ""
    ) -> ConsequencesOut:
        """All of the extensions of a person or of a section; what they handed in is looked at anew.

        Raises:
            InvalidInput: of nobody or of both.
            NotFound: they have none.
        """
        place = self.place(who, course, TAUGHT_BY)
        check_open(place.course)
        self.assignment(place, name)
        _check_whose(person, section)
        seconds = sum(
            each.seconds
            for each in self.store.extensions(course)
            if (each.assignment, each.person, each.section) == (name, person, section)
        )
        whom = person or f"Section {section}"
        if not seconds:
            raise NotFound(
                f"{whom[:80]} has no extension for {name}.",
                accepted=f"See: carrel course extend {name}",
            )
        change = self.change(
            *(who, AuditAction.EXTEND, f"{course}/{name}"),
            before={"for": whom, "seconds": seconds},
            after={"for": whom, "seconds": 0},
        )
        whose = {"person": person, "section": section}
        self.store.take_time_back(course, name, **whose, change=change)
        said = f"{whom} had {units.duration(seconds)} more for {name}: taken back."
        return ConsequencesOut(sentences=[said], saved=True)

    def _check_section(self, course: str, section: str) -> None:
        known = sorted({m.section for m in self.store.members(course) if m.section})
        if section not in known:
            raise InvalidInput(
                f"{course} has no section {section[:80]!r}.",
                accepted=f"Sections: {', '.join(known) or 'none yet'}.",
                field="section",
            )

    def record_outage(self, who: Identity, body: OutageIn) -> ConsequencesOut:
        """What was due in it, or within a day after, is due so much later: for everybody.

        Raises:
            Forbidden: for those who are no administrators.
            InvalidInput: it ends before it begins, or is longer than a month.
        """
        check(who)
        if not body.starts_at < body.ends_at <= body.starts_at + LONGEST_OUTAGE:
            raise InvalidInput(
                "An outage ends after it begins, within 31 days.",
                accepted="Two moments in their order.",
                field="ends_at",
            )
        if body.course:
            self.store.course(body.course)
        outage = Outage(
            starts_at=body.starts_at,
            ends_at=body.ends_at,
            course=body.course,
            why=body.why.strip(),
            recorded_at=self.commands.clock(),
            recorded_by=who.name,
        )
        said = self._moved(outage)
        change = self.change(
            *(who, AuditAction.OUTAGE, body.course),
            why=outage.why,
            after={"starts_at": outage.starts_at, "ends_at": outage.ends_at},
        )
        self.store.add_outage(outage, change=change)
        return ConsequencesOut(sentences=said, saved=True, changes=True)

    def outages(self, who: Identity) -> OutagesOut:
        """Those of all courses and of one's own, in the order in which they were recorded."""
        mine = {"", *(place.course.name for place in self.places(who))}
        return OutagesOut(
            outages=[
                OutageOut(
                    starts_at=each.starts_at,
                    ends_at=each.ends_at,
                    course=each.course,
                    why=each.why,
                    recorded_by=each.recorded_by,
                )
                for each in self.store.outages()
                if each.course in mine
            ]
        )

    def _moved(self, outage: Outage) -> list[str]:
        """Which assignments are due later for the class because of it."""
        before = self.store.outages()
        said = []
        for course in self.store.courses():
            for each in self.store.assignments(course.name):
                if each.due is None or course.archived_at is not None:
                    continue
                was = deadline_rules.after_outages(each.due, course.name, before)
                now = deadline_rules.after_outages(each.due, course.name, (*before, outage))
                if now > was:
                    more = units.duration(now - was)
                    said.append(f"{each.name} of {course.name} is due {more} later.")
        return said or ["It moves no due time of a class; extended ones may move."]
