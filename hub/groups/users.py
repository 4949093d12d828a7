"""Users with their groups, roles and usage; changes of Carrel's own accounts."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..accounts.passwords import random_password
from ..accounts.store import Accounts
from ..accounts.usernames import parse_name
from ..errors import Conflict, NotFound, Unavailable
from ..interfaces.job_reuse import CompileCaches, NoCompileCaches
from ..interfaces.jupyterhub import HubUser, JupyterHub
from ..records.audit import AuditAction
from ..records.requests import Cause, CauseCode, RequestFilter
from ..runtime.audit_trail import AuditTrail
from ..scheduling.model.snapshot import Kind
from ..scheduling.model.states import LIVE, State
from ..schemas.admin import PeopleOut, PersonOut
from ..transitions import lifecycle

_ALL = 100_000
_END_SECONDS = 30.0
_POLL_SECONDS = 0.2
_SHOWN_SECONDS = 5.0
"""Maximum age of JupyterHub's list of users on a page."""


@dataclass(frozen=True, slots=True)
class Users(AuditTrail):
    """The embedded accounts, and all other users that JupyterHub or the ledger knows.

    A change of an account is written to the audit log after the change, not in the same
    transaction: accounts have a database of their own.
    """

    hub: JupyterHub
    accounts: Accounts | None
    compile_caches: CompileCaches = field(default_factory=NoCompileCaches)

    # -- queries --------------------------------------------------------------------------

    def all(self) -> PeopleOut:
        """Return all users with an account, a JupyterHub user or requests, by name."""
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

    def one(self, name: str) -> PersonOut:
        """Return one user. Raises NotFound if there is no such account, user or owner."""
        account = self.accounts.find(name) if self.accounts else None
        try:
            user = self.hub.user(name, for_page=True)
        except (NotFound, Unavailable):
            user = None
        which = RequestFilter(owner=name, states=LIVE, limit=_ALL)
        with self.store.together():
            used = self.store.usage(now=self.clock(), owner=name)
            live, taught = len(self.store.requests(which)), self.store.taught_by(name)
        if account is None and user is None and not used and not live and not taught:
            raise NotFound(f"There is no user {name[:80]}.", accepted="See the list of people.")
        return PersonOut(
            name=name,
            admin=bool((account and account.admin) or (user and user.admin)),
            account=account is not None,
            groups=sorted(user.groups) if user else [],
            teaches=sorted(taught),
            live=live,
            device_seconds=round(sum(usage.total for usage in used), 3),
        )

    def _teachers(self) -> Mapping[str, set[str]]:
        found: dict[str, set[str]] = {}
        for group in self.store.groups():
            for person in self.store.teachers(group.name):
                found.setdefault(person, set()).add(group.name)
        return found

    # -- changes --------------------------------------------------------------------------

    def add(
        self, name: str, password: str = "", *, admin: bool, groups: Sequence[str], who: str
    ) -> str:
        """Create an account, add it to these groups, and return its password.

        Raises:
            InvalidInput: the name or the password is not valid.
            Conflict: the account exists.
            NotFound: a group is unknown.
            Unavailable: JupyterHub, which stores the members, is not available; no account is
                created then.
        """
        name = parse_name(name)
        self._check_unchanged(AuditAction.ACCOUNT_ADD, name, who)
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
            # The authenticator sets the role at sign-in: services may not create administrators.
            self.hub.add_user(name, admin=False)
        for group in groups:
            self.join(group, (name,), who=who)
        return password

    def set_password(self, name: str, password: str = "", *, who: str) -> str:
        """Set a new password, random if none is given, and return it. Raises NotFound."""
        name = parse_name(name)
        self._check_unchanged(AuditAction.NEW_PASSWORD, name, who)
        password = password or random_password()
        self._own.set_password(name, password)
        self.store.add_change(self._change(AuditAction.NEW_PASSWORD, name, who))
        return password

    def make_link(self, name: str, *, who: str) -> str:
        """Return the code of a new one-time link, by which the user sets a password.

        The present password works until then. Raises NotFound.
        """
        name = parse_name(name)
        self._check_unchanged(AuditAction.PASSWORD_LINK, name, who)
        code = self._own.make_links((name,))[name]
        self.store.add_change(self._change(AuditAction.PASSWORD_LINK, name, who))
        return code

    def use_link(self, code: str, password: str) -> str:
        """Set the password by a one-time link, and return the user. Raises NotFound."""
        name = self._own.use_link(code, password)
        why = "By a one-time link."
        self.store.add_change(self._change(AuditAction.NEW_PASSWORD, name, name, why=why))
        return name

    def change_password(self, name: str, current: str, password: str) -> None:
        """Change one's own password. Raises InvalidInput and TooManyAttempts."""
        self._own.change_password(name, current, password)
        self.store.add_change(self._change(AuditAction.NEW_PASSWORD, name, name))

    def remove(self, name: str, *, who: str, force: bool = False) -> None:
        """End a user's sessions, and delete schedules, secrets, compiled code, account and
        JupyterHub user.

        Files and the ledger stay. Every step is safe to repeat; the account is deleted last, so
        that an interrupted removal can be repeated.

        Raises:
            NotFound: there is no such account.
            Conflict: it belongs to the last administrator, and ``force`` is not given.
            Unavailable: JupyterHub is not available, or a session does not end in time.
        """
        name = parse_name(name)
        self._check_unchanged(AuditAction.ACCOUNT_REMOVE, name, who)
        account = self._own.find(name)
        if account is None:
            self._own.remove(name)  # raises NotFound, with the list of accounts
            return
        if not force:
            check_not_last_admin(
                self._own, name, more=" To remove the last one anyway: carrel user remove --force."
            )
        self.store.remove_schedules_of(name)
        self.store.remove_secrets_of(name)
        for program in self.store.programs(name):
            self.store.revoke_program(program.id, by=who, now=self.clock())
        self.store.remove_notification_channels_of(name)
        self._end_sessions(name, who)
        self.compile_caches.clear(name)
        self.hub.remove_user(name)
        # Before the account is gone: the repetition of an interrupted removal would find none.
        self.store.add_change(
            self._change(AuditAction.ACCOUNT_REMOVE, name, who, before={"admin": account.admin})
        )
        self._own.remove(name)
        # Jobs go on: one may have ended before the entry, which tells the service to keep nothing.
        self.compile_caches.clear(name)

    def _end_sessions(self, name: str, who: str) -> None:
        """End queued, starting and running sessions: JupyterHub refuses to delete users with a
        server that is starting."""
        cause = Cause(
            code=CauseCode.CANCELLED, message=f"Cancelled: the account was removed by {who}."
        )
        live = RequestFilter(owner=name, kind=Kind.SESSION, states=LIVE, limit=_ALL)
        for request in self.store.requests(live):
            now = self.clock()
            self.store.apply(request.id, lifecycle.stop, State.CANCELLED, cause, now=now)
        deadline = time.monotonic() + _END_SECONDS
        while pending := self._pending(name):
            if time.monotonic() >= deadline:
                raise Unavailable(
                    f"The session {pending} of {name} is still starting or stopping.",
                    accepted=f"Try again in a moment: the account {name} still exists.",
                )
            time.sleep(_POLL_SECONDS)

    def _pending(self, name: str) -> str:
        """Return a server of the user that is starting or stopping; empty for none."""
        try:
            servers = self.hub.user(name).servers.values()
        except NotFound:
            return ""  # They have never signed in.
        pending = (server for server in servers if server.pending)
        return next((server.name or "default session" for server in pending), "")

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
        return check_own_accounts(self.accounts)


def check_own_accounts(accounts: Accounts | None) -> Accounts:
    """Return the accounts. Raises Conflict where users sign in in another way."""
    if accounts is None:
        raise Conflict(
            "This site does not use Carrel's accounts.",
            accepted="Change users in the sign-in system of your site.",
        )
    return accounts


def check_not_last_admin(accounts: Accounts, name: str, *, field: str = "", more: str = "") -> None:
    """Raise Conflict if this is the only account of an administrator."""
    if [other.name for other in accounts.all() if other.admin] == [name]:
        raise Conflict(
            f"{name} is the last administrator of this site.",
            accepted=f"Add another one first: carrel user add NAME --admin.{more}",
            field=field,
        )
