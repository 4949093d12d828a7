"""Show the members of a course, and change them to those of a roster."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...hub.groups.quotas import GroupQuotas
from ...hub.groups.users import Users
from ...hub.records.audit import AuditAction
from ...hub.records.identity import Identity
from ...hub.schemas.admin import ConsequencesOut
from ...hub.schemas.courses import MemberOut, MembersOut
from ..model.records import CourseRole
from .access import GRADERS, TEACHERS, CourseAccess, check_not_archived
from .class_list import ClassList, member_out
from .csv_import import RosterChange, read_roster, roster_change
from .missing_accounts import MissingAccounts

_UNCHANGED = "Nothing changes."


@dataclass(frozen=True, slots=True)
class RosterService:
    """The members of courses, for their teachers and graders."""

    access: CourseAccess
    class_list: ClassList
    missing_accounts: MissingAccounts

    def members(self, who: Identity, course: str) -> MembersOut:
        """All members by name, also those who have left. For teachers and graders."""
        members, teachers = self.listed(who, course), self.access.context.store.teachers(course)
        here = [each.person for each in members if each.left_at is None]
        return MembersOut(
            teachers=list(teachers),
            members=members,
            without_account=self.missing_accounts.of((*here, *teachers)),
        )

    def listed(self, who: Identity, course: str) -> list[MemberOut]:
        """The members alone, without a look at the accounts. For teachers and graders."""
        self.access.membership(who, course, GRADERS)
        return [member_out(each) for each in self.class_list.members(course)]

    def update(
        self, who: Identity, course: str, students: str, *, dry_run: bool = False
    ) -> ConsequencesOut:
        """Make the class what the roster says; a dry run only lists the changes."""
        membership = self.access.membership(who, course, TEACHERS)
        check_not_archived(membership.course)
        known = self.access.store.members(course)
        rows = read_roster(students)
        change = roster_change(
            course,
            rows,
            known,
            unlisted=self.class_list.unlisted(course, known, fresh=True),
            teachers=self.access.context.store.teachers(course),
        )
        sentences = list(change.sentences()) or [_UNCHANGED]
        sentences += self.missing_accounts.sentences(row.person for row in rows)
        if not change.empty:
            self.access.check_unchanged(who, AuditAction.ROSTER_SET, course)
        if not (dry_run or change.empty):
            self.apply(who, change)
        return ConsequencesOut(sentences=sentences, saved=not dry_run, changes=not change.empty)

    def apply(self, who: Identity, roster: RosterChange) -> None:
        """Change the members of a course.

        JupyterHub comes first, so that the same roster completes a change that was interrupted.
        """
        if roster.empty:
            return
        context, course = self.access.context, roster.course
        groups = {user.name: user.groups for user in context.hub.users()}
        students = {each.person for each in roster.staying if each.role is CourseRole.STUDENT}
        context.hub.add_users(tuple(sorted(students - set(groups))))
        in_group = {person for person, of in groups.items() if course in of}
        removed = {each.person for each in (*roster.leaving, *roster.staying)} - students
        users = Users(context.store, context.clock, context.hub, None)
        if joining := sorted(students - in_group):
            users.join(course, joining, who=who.name)
        if leaving := sorted(removed & in_group):
            users.leave(course, leaving, who=who.name)
        before = set(context.store.teachers(course))
        after = before.union(roster.new_teachers).difference(roster.former_teachers)
        GroupQuotas(context.store, context.clock).set_teachers(course, after, who=who.name)
        now = context.clock()
        left = tuple(replace(each, left_at=now) for each in roster.leaving)
        change = self.access.audit_entry(
            *(who, AuditAction.ROSTER_SET, course), after={"changes": list(roster.sentences())}
        )
        self.access.store.put_members(course, (*roster.staying, *left), change=change)
