"""Change the groups and roles of one user: member, teacher, administrator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..accounts.store import Accounts
from ..accounts.usernames import parse_name
from ..errors import Conflict, NotFound
from ..interfaces.jupyterhub import JupyterHub
from ..messages import units
from ..records.audit import AuditAction
from ..records.requests import RequestFilter
from ..runtime.audit_trail import AuditTrail
from ..scheduling.model.states import LIVE
from ..schemas.admin import PersonRolesIn
from .quotas import GroupQuotas
from .users import Users, check_not_last_admin

_MOST = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleChange:
    """The difference between the roles of a user and the requested ones.

    Attributes:
        joins, leaves: groups in which they become a member, or no longer are one.
        gains, loses: groups in which they become a teacher, or no longer are one.
        admin: whether they become an administrator; None without a change.
    """

    name: str
    joins: tuple[str, ...] = ()
    leaves: tuple[str, ...] = ()
    gains: tuple[str, ...] = ()
    loses: tuple[str, ...] = ()
    admin: bool | None = None


@dataclass(frozen=True, slots=True)
class UserRoles(AuditTrail):
    """Previews and saves changes. Members are in JupyterHub, teachers in the store, and
    administrators among the accounts, so that saving has several steps; all can be repeated."""

    hub: JupyterHub
    accounts: Accounts | None

    def change(self, name: str, body: PersonRolesIn, *, who: str) -> RoleChange:
        """Return what a request would change.

        Raises:
            NotFound: there is no such user, or no such group.
            Conflict: the last administrator would lose the role, or the site has no accounts.
            ChangedMeanwhile: the form or call is based on outdated roles.
            Unavailable: JupyterHub, which stores the members, does not answer.
        """
        name = parse_name(name)
        self._check_unchanged(AuditAction.ROLE_SET, name, who)
        groups = {group.name for group in self.store.groups()}
        for group in {*(body.groups or ()), *(body.teaches or ())} - groups:
            self.store.group(group)  # raises NotFound, with the list of groups
        member, taught = self._groups_of(name) & groups, set(self.store.taught_by(name))
        wanted = member if body.groups is None else set(body.groups)
        teaching = taught if body.teaches is None else set(body.teaches)
        for group in taught ^ teaching:
            self._check_unchanged(AuditAction.TEACHERS_SET, group, who)
        return RoleChange(
            name=name,
            joins=_sorted(wanted - member),
            leaves=_sorted(member - wanted),
            gains=_sorted(teaching - taught),
            loses=_sorted(taught - teaching),
            admin=self._new_role(name, body.admin),
        )

    def sentences(self, change: RoleChange) -> Iterator[str]:
        """Describe the effect of a change; nothing if there is none."""
        name = change.name
        for group in change.joins:
            yield f"{name} becomes a member of {group}."
        for group in change.leaves:
            yield f"{name} is no longer a member of {group}.{self._of_requests(name, group)}"
        for group in change.gains:
            yield f"{name} becomes a teacher of {group}."
        for group in change.loses:
            yield f"{name} is no longer a teacher of {group}."
        if change.admin:
            yield f"{name} becomes an administrator, within five minutes or with the next sign-in."
        elif change.admin is not None:
            yield (
                f"{name} is no longer an administrator. All their sign-ins end and their API "
                "tokens are revoked; running sessions and jobs continue."
            )

    def save(self, change: RoleChange, *, who: str) -> None:
        users = Users(self.store, self.clock, self.hub, self.accounts)
        quotas = GroupQuotas(self.store, self.clock)
        if change.joins:
            self.hub.add_user(change.name, admin=False)
        for group in change.joins:
            users.join(group, (change.name,), who=who)
        for group in change.leaves:
            users.leave(group, (change.name,), who=who)
        for group in change.gains:
            quotas.set_teachers(group, {*self.store.teachers(group), change.name}, who=who)
        for group in change.loses:
            quotas.set_teachers(group, {*self.store.teachers(group)} - {change.name}, who=who)
        if change.admin is not None and self.accounts is not None:
            self.accounts.set_admin(change.name, admin=change.admin)
            self.store.add_change(
                self._change(
                    *(AuditAction.ROLE_SET, change.name, who),
                    before={"admin": not change.admin},
                    after={"admin": change.admin},
                )
            )

    def _groups_of(self, name: str) -> frozenset[str]:
        """Return the groups of a user, whom JupyterHub may only know after the first sign-in."""
        try:
            return self.hub.user(name).groups
        except NotFound:
            if self.accounts is None or self.accounts.find(name) is None:
                raise
            return frozenset()

    def _new_role(self, name: str, admin: bool | None) -> bool | None:
        """Return the new role, None without a change. Raises Conflict."""
        account = None if self.accounts is None else self.accounts.find(name)
        if self.accounts is None or account is None:
            if admin is None:
                return None
            raise Conflict(
                f"{name} has no account of Carrel.",
                accepted="The sign-in system of your site decides who is an administrator.",
                field="admin",
            )
        if admin in (None, account.admin):
            return None
        if not admin:
            check_not_last_admin(self.accounts, name, field="admin")
        return admin

    def _of_requests(self, name: str, group: str) -> str:
        """Say what happens to the requests of a member who leaves."""
        which = RequestFilter(owner=name, groups=frozenset({group}), states=LIVE, limit=_MOST)
        live = len(self.store.requests(which))
        if not live:
            return ""
        requests = units.count(live, "queued or running request")
        return f" {requests} there {'continues' if live == 1 else 'continue'}."


def _sorted(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names))
