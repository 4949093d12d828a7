"""Accounts for the members of a course who have none, where accounts are Carrel's own."""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from ...hub.accounts.store import Accounts
from ...hub.accounts.usernames import is_valid
from ...hub.errors import Conflict
from ...hub.groups.users import Users
from ...hub.messages import units
from ...hub.records.identity import Identity
from ...hub.schemas.admin import PasswordOut
from ...hub.schemas.courses import NewAccountsOut
from .access import TEACHERS, CourseAccess, check_not_archived
from .class_list import ClassList

SECONDS_PER_CALL = 20.0
"""How long one call creates accounts: a password hash takes a quarter of a second."""
_AT_ONCE = 2
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class MissingAccounts:
    """The members of courses who cannot sign in yet.

    ``accounts`` is None where the site uses another authenticator, which alone knows its users.
    """

    access: CourseAccess
    class_list: ClassList
    accounts: Accounts | None

    def of(self, people: Iterable[str]) -> list[str]:
        """Return the users without an account, by name."""
        if self.accounts is None:
            return []
        return sorted(set(people) - {account.name for account in self.accounts.all()})

    def sentences(self, people: Iterable[str]) -> list[str]:
        """Name the users without an account; empty if all have one."""
        missing = self.of(people)
        if not missing:
            return []
        shown, more = ", ".join(missing[:_SHOWN]), len(missing) - _SHOWN
        names = f"{shown} and {more} more" if more > 0 else shown
        verb = "has" if len(missing) == 1 else "have"
        return [f"{units.count(len(missing), 'user')} {verb} no account yet: {names}."]

    def create(self, who: Identity, course: str) -> NewAccountsOut:
        """Create as many missing accounts as fit into one call; repeat it until none remains.

        Raises:
            Forbidden: the user is not a teacher of the course.
            Conflict: the course is archived, or the site uses another authenticator.
        """
        membership = self.access.membership(who, course, TEACHERS)
        check_not_archived(membership.course)
        context, accounts = self.access.context, self.accounts
        if accounts is None:
            raise Conflict(
                "The accounts of this site are not Carrel's own.",
                accepted="Members sign in with the accounts of the site's sign-in system.",
            )
        members = [each.person for each in self.class_list.members(course) if not each.left_at]
        missing = self.of((*members, *context.store.teachers(course)))
        users = Users(context.store, context.clock, context.hub, accounts)
        until = time.monotonic() + SECONDS_PER_CALL

        def create(name: str) -> PasswordOut | None:
            if time.monotonic() < until and is_valid(name):
                # A Conflict: another teacher created it meanwhile, and knows its password.
                with suppress(Conflict):
                    password = users.add(name, admin=False, groups=(), who=who.name)
                    return PasswordOut(name=name, password=password)
            return None

        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="accounts") as threads:
            created = [made for made in threads.map(create, missing) if made is not None]
        return NewAccountsOut(created=created, remaining=len(self.of(missing)))
