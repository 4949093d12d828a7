"""Release assignments, and give students the files of a released version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...hub.errors import Conflict, InvalidInput, NotFound, OverMaximum
from ...hub.messages import units
from ...hub.records.audit import AuditAction, AuditEntry
from ...hub.records.identity import Identity
from ...hub.records.json_value import Json
from ...hub.scheduling.quota.tree import group_max
from ...hub.schemas.courses import HandOutOut, ReleasedOut, ReleaseIn
from ..deadlines import rules as deadline_rules
from ..files.bundle import FileBundle
from ..files.transfer import bundle_of_body, content_out, contents, ref_out, store_bundle
from ..model.interfaces import Blobs
from ..model.records import Assignment, CourseRole, Fetched, FileRef, ReleasedVersion
from ..prefixes.service import PrefixService
from ..releases.graded_cells import report
from ..releases.release import PreparedRelease, check_assignment_name, prepare_release
from ..roster.access import GRADERS, TEACHERS, CourseAccess, check_not_archived
from ..sandbox.interface import SandboxFactory


@dataclass(frozen=True, slots=True)
class AssignmentService:
    """Attributes:
    sandboxes: in which a release is checked before students get it; None to check nothing.
    prefixes: computes the prefix of a new version, where that is switched on.
    """

    access: CourseAccess
    blobs: Blobs
    sandboxes: SandboxFactory | None = None
    prefixes: PrefixService | None = None

    def release(
        self,
        who: Identity,
        course: str,
        name: str,
        body: ReleaseIn,
        *,
        stripped: FileBundle | None = None,
    ) -> ReleasedOut:
        """Release a version, or change the due date and rules of the released one.

        Nothing is stored unless all of it is accepted. The files of the newest version again are
        not a new version.

        Args:
            stripped: the files for students, where the teacher's own nbgrader has made them.

        Raises:
            Conflict: no cell has points, and the body does not confirm that.
            InvalidInput, TooLarge: of the files, of nbgrader's cells in them, or of the rules.
            OverMaximum: the course never has so many devices.
        """
        membership = self.access.membership(who, course, TEACHERS)
        check_not_archived(membership.course)
        check_assignment_name(name)
        store = self.access.store
        known = {each.name: each for each in store.assignments(course)}
        before = known.get(name) or Assignment(course=course, name=name)
        assignment = self._changed(before, body)
        # Before the solution is graded, which takes as long as the notebooks run.
        self.access.check_unchanged(who, AuditAction.ASSIGNMENT_RELEASE, f"{course}/{name}")
        ready = self._prepare(assignment, body, stripped)
        warnings: tuple[str, ...] = ()
        if ready is None:
            made = store.released_version(course, name)
        else:
            warnings = ready.warnings
            made = ReleasedVersion(
                course=course,
                assignment=name,
                version=0,
                files=store_bundle(self.blobs, ready.files),
                source=store_bundle(self.blobs, ready.source),
                released_at=self.access.context.clock(),
                released_by=who.name,
                tried=ready.tried,
            )
        made = store.release(
            assignment, made, change=self._release_entry(who, before, assignment, made)
        )
        why_not = self.prefixes.released(course, name) if self.prefixes is not None else ""
        return self._released(assignment, made, [*warnings, why_not] if why_not else warnings)

    def released(self, who: Identity, course: str, name: str) -> ReleasedOut:
        """The newest version, with the report of its check. For teachers and graders.

        Raises:
            NotFound: it is not released.
        """
        membership = self.access.membership(who, course, GRADERS)
        assignment = self.access.assignment(membership, name)
        return self._released(assignment, self.access.store.released_version(course, name), ())

    def withdraw(self, who: Identity, course: str, name: str) -> None:
        """Hide an assignment from students until it is released again; nothing is deleted.

        Safe to repeat.

        Raises:
            Conflict: it has not been released.
        """
        membership = self.access.membership(who, course, TEACHERS)
        check_not_archived(membership.course)
        found = self.access.assignment(membership, name)
        if found.hidden:
            return
        if not found.version:
            raise Conflict(f"{name} has not been released: there is nothing to withdraw.")
        assignment = replace(found, hidden=True)
        change = self.access.audit_entry(
            who, AuditAction.ASSIGNMENT_SET, f"{course}/{name}", after={"hidden": True}
        )
        self.access.store.put_assignment(assignment, change=change)

    def fetch(
        self, who: Identity, course: str, name: str, *, version: int | None = None
    ) -> HandOutOut:
        """The files of a version; which one a student has fetched is stored.

        Raises:
            NotFound: it is not released.
        """
        membership = self.access.membership(who, course)
        assignment, store = self.access.assignment(membership, name), self.access.store
        made = store.released_version(course, name, version)
        if membership.role is CourseRole.STUDENT and membership.course.archived_at is None:
            fetched = Fetched(
                course=course,
                assignment=assignment.name,
                person=who.name,
                version=made.version,
                at=self.access.context.clock(),
            )
            store.put_fetched(fetched)
        return HandOutOut(
            course=course,
            assignment=name,
            version=made.version,
            released_at=made.released_at,
            released_by=made.released_by,
            sha256=made.files.sha256,
            files=[content_out(self.blobs, file) for file in made.files.files],
        )

    def texts(self, who: Identity, course: str, name: str) -> list[str]:
        """The notebooks of the newest version, by name; students can read them before fetching."""
        return [file.name for file in self._released_files(who, course, name)]

    def text(self, who: Identity, course: str, name: str, notebook: str) -> bytes:
        """A notebook of the newest version, as students get it. Fetching is not recorded.

        Raises:
            NotFound: it is not released, or has no such notebook.
        """
        for file in self._released_files(who, course, name):
            if file.name == notebook:
                return contents(self.blobs, [file])[notebook]
        raise NotFound(f"{name} has no notebook {notebook[:80]!r}.")

    # -- internal -------------------------------------------------------------------------

    def _released_files(self, who: Identity, course: str, name: str) -> list[FileRef]:
        assignment = self.access.assignment(self.access.membership(who, course), name)
        if not assignment.version:
            return []
        files = self.access.store.released_version(course, name).files.files
        return [file for file in files if file.name.endswith(".ipynb")]

    def _release_entry(
        self, who: Identity, before: Assignment, after: Assignment, made: ReleasedVersion
    ) -> AuditEntry:
        """The audit entry of a release, with the values that differ."""
        old: dict[str, Json] = {}
        if before.version:
            last = self.access.store.released_version(before.course, before.name)
            old = _values(before, last)
        new = _values(after, made)
        changed = [name for name in new if name not in old or old[name] != new[name]]
        return self.access.audit_entry(
            *(who, AuditAction.ASSIGNMENT_RELEASE, f"{after.course}/{after.name}"),
            before={name: old[name] for name in changed if name in old},
            after={name: new[name] for name in changed},
        )

    def _released(
        self, assignment: Assignment, made: ReleasedVersion, warnings: Sequence[str]
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

    def _prepare(
        self, assignment: Assignment, body: ReleaseIn, stripped: FileBundle | None
    ) -> PreparedRelease | None:
        """None where no files came. ``stripped`` files are released as they are."""
        source = bundle_of_body(body)
        if source is None:
            return None if stripped is None else PreparedRelease(files=stripped, source=stripped)
        image = self.access.image_of(self.access.store.course(assignment.course))
        ready = prepare_release(
            *(assignment.name, source),
            sandboxes=self.sandboxes,
            course=assignment.course,
            image=image,
            seconds=assignment.seconds,
            ungraded=body.ungraded or stripped is not None,
        )
        return ready if stripped is None else replace(ready, files=stripped)

    def _changed(self, before: Assignment, body: ReleaseIn) -> Assignment:
        """The assignment with what the body says; fields left out keep their value."""
        after = replace(before, hidden=False)
        if body.due is not None:
            at, zone = (
                deadline_rules.read_due(body.due) if body.due.strip() else (None, before.zone)
            )
            if at is not None and at <= self.access.context.clock() and at != before.due:
                raise InvalidInput(
                    f"{body.due.strip()[:80]} is over.", accepted="A later moment.", field="due"
                )
            after = replace(after, due=at, zone=zone)
        if body.late is not None:
            after = replace(after, late=deadline_rules.read_late(body.late))
        if body.devices is not None:
            most = group_max(self.access.context.store.group(before.course))
            if body.devices > most:
                raise OverMaximum(
                    f"{before.course} never has {units.devices(body.devices)}.",
                    accepted=f"At most {most} for one submission.",
                    field="devices",
                )
            after = replace(after, devices=body.devices)
        return after if body.seconds is None else replace(after, seconds=body.seconds)


def _values(assignment: Assignment, made: ReleasedVersion) -> dict[str, Json]:
    """The settings and files of an assignment, for the audit log."""
    return {
        "due": assignment.due,
        "zone": assignment.zone,
        "late": deadline_rules.late_text(assignment.late),
        "devices": assignment.devices,
        "max_seconds": assignment.seconds,
        "hidden": assignment.hidden,
        "sha256": made.files.sha256,
    }
