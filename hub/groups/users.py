"""People: who there is, in which groups and roles, and what they use; Carrel's own accounts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..accounts.passwords import random_password
from ..accounts.store import Accounts
from ..accounts.usernames import parse_name
from ..errors import Conflict, Unavailable
from ..interfaces.jupyterhub import HubUser, JupyterHub
from ..records.audit import AuditAction
from ..runtime.audit_trail import AuditTrail
from ..schemas.admin import PeopleOut, PersonOut

_SHOWN_SECONDS = 5.0
"""How old the hub's list of users may be where people look at it."""


@dataclass(frozen=True, slots=True)
class Users(AuditTrail):
    """The embedded accounts, and all other users that JupyterHub or the ledger knows.

    Each change of an account gets its line in the audit list right after it: accounts are in a
    database of their own.
    """

    hub: JupyterHub
    accounts: Accounts | None

    # -- looking --------------------------------------------------------------------------

    def all(self) -> PeopleOut:
        """Everybody with an account, a user at the hub, or requests, by name."""
        try:
            users, away = {user.name: user for user in self.hub.users(within=_SHOWN_SECONDS)}, False
        except Unavailable:
            users, away = dict[str, HubUser](), True
        accounts = {a.name: a for a in self.accounts.all()} if self.accounts else {}
        with self.store.together():
            seen, used = self.store.snapshot(self.clock()), self.store.usage(now=self.clock())
            teaches = self._teachers()
        live = Counter([w.owner for w in seen.pending] + [h.owner for h in seen.allocations])
        seconds: dict[str, float] = {}
        for usage in used:
            seconds[usage.owner] = seconds.get(usage.owner, 0.0) + usage.total
        names = {*users, *accounts, *live, *seconds, *teaches}
        people = []
        for name in sorted(names):
            user, account = users.get(name), accounts.get(name)
            person = PersonOut(
                name=name,
                admin=bool((account and account.admin) or (user and user.admin)),
                account=account is not None,
                groups=sorted(user.groups) if user else [],
                teaches=sorted(teaches.get(name, ())),
                live=live[name],
                device_seconds=round(seconds.get(name, 0.0), 3),
            )
            people.append(person)
        return PeopleOut(people=people, hub_away=away)

    def _teachers(self) -> Mapping[str, set[str]]:
        found: dict[str, set[str]] = {}
        for group in self.store.groups():
            for person in self.store.teachers(group.name):
                found.setdefault(person, set()).add(group.name)
        return found

    # -- changing -------------------------------------------------------------------------

    def add(
        self, name: str, password: str = "", *, admin: bool, groups: Sequence[str], who: str
    ) -> str:
        """Make an account, and a member of these groups; returns its password.

        Raises:
            InvalidInput, Conflict: of the name or the password.
            NotFound: a group is unknown.
            Unavailable: the hub, which has the members, is away; nothing is made then.
        """
        name = parse_name(name)
        if groups:
            self.hub.users()
        for group in groups:
            self.store.group(group)
        password = password or random_password()
        self._own.add(name, password, admin=admin)
        self.store.add_change(
            self._change(AuditAction.ACCOUNT_ADD, name, who, after={"admin": admin})
        )
        if groups:
            # An administrator becomes one at sign-in: the hub lets no service make one.
            self.hub.add_user(name, admin=False)
        for group in groups:
            self.join(group, (name,), who=who)
        return password

    def set_password(self, name: str, password: str = "", *, who: str) -> str:
        """Set a new one, made up where none is given; returns it. Raises NotFound."""
        name = parse_name(name)
        password = password or random_password()
        self._own.set_password(name, password)
        self.store.add_change(self._change(AuditAction.NEW_PASSWORD, name, who))
        return password

    def remove(self, name: str, *, who: str, force: bool = False) -> None:
        """Remove an account and the hub's user with its sessions; files and ledger are kept.

        Raises:
            NotFound: there is no such account.
            Conflict: it is the last administrator's, and ``force`` is not given.
            Unavailable: the hub is away.
        """
        name = parse_name(name)
        account = self._own.find(name)
        if account is None:
            self._own.remove(name)  # raises, and lists the accounts there are
            return
        admins = [each.name for each in self._own.all() if each.admin]
        if admins == [name] and not force:
            raise Conflict(
                f"{name} is the last administrator: this site would have none.",
                accepted="Make another one first: carrel user add NAME --admin. "
                "Or, knowing that: carrel user remove --force.",
            )
        self.hub.remove_user(name)
        self._own.remove(name)
        self.store.add_change(
            self._change(AuditAction.ACCOUNT_REMOVE, name, who, before={"admin": account.admin})
        )

    def join(self, group: str, names: Sequence[str], *, who: str) -> None:
        self.hub.add_to_group(group, tuple(names))
        for name in names:
            self.store.add_change(
                self._change(AuditAction.MEMBER_ADD, name, who, after={"group": group})
            )

    def leave(self, group: str, names: Sequence[str], *, who: str) -> None:
        self.hub.remove_from_group(group, tuple(names))
        for name in names:
            self.store.add_change(
                self._change(AuditAction.MEMBER_REMOVE, name, who, before={"group": group})
            )

    @property
    def _own(self) -> Accounts:
        if self.accounts is None:
            raise Conflict(
                "This site keeps no accounts of its own.",
                accepted="Its people sign in with something else: change them there.",
            )
        return self.accounts
