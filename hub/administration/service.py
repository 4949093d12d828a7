"""Operations for administrators, for the API and the pages; access rights are checked here."""

from __future__ import annotations

from dataclasses import dataclass

from ..accounts.store import LINK_SECONDS, Accounts
from ..accounts.usernames import normalise
from ..errors import InvalidInput
from ..groups.calendar import GroupCalendar, ReservationPreview
from ..groups.people_import import PeopleImport
from ..groups.quotas import GroupQuotas
from ..groups.user_roles import UserRoles
from ..groups.users import Users, check_own_accounts
from ..inventory.maintenance import NodeMaintenance
from ..records.identity import Identity, require_admin
from ..runtime.context import Context
from ..schemas.admin import (
    ConsequencesOut,
    DrainIn,
    GroupIn,
    NodeOut,
    PasswordLinkOut,
    PasswordOut,
    PeopleImportOut,
    PeopleOut,
    PersonIn,
    PersonOut,
    PersonRolesIn,
    QuarantineIn,
    QuotaTreeOut,
)
from ..schemas.announcements import AnnouncementIn, AnnouncementOut
from ..schemas.calendar import ReservationIn, ReservationOut, TermIn
from .announcements import Announcements
from .audit_log import AuditLog


@dataclass(frozen=True, slots=True)
class Administration:
    """Operations for administrators: every method raises Forbidden for other callers.

    ``users`` is also for the own account of a user, and checks nothing.

    Attributes:
        accounts: Carrel's own accounts, also where the site uses another authenticator.
    """

    context: Context
    accounts: Accounts | None = None

    # -- groups and quotas ----------------------------------------------------------------

    def tree(self, who: Identity) -> QuotaTreeOut:
        require_admin(who)
        return QuotaTreeOut(groups=self._quotas.all())

    def set_group(
        self, who: Identity, name: str, body: GroupIn, *, dry_run: bool = False
    ) -> ConsequencesOut:
        """Create or change a group and return the consequences; a dry run saves nothing."""
        require_admin(who)
        after = self._quotas.wanted(name, body)
        consequences = self._quotas.preview(after, body.teachers)
        sentences = list(consequences) or ["Nothing changes."]
        if consequences:
            self._quotas.check_unchanged(name, who=who.name)
        if dry_run:
            return ConsequencesOut(sentences=sentences, saved=False, changes=bool(consequences))
        self._quotas.put(after, who=who.name)
        if body.teachers is not None:
            self._quotas.set_teachers(name, body.teachers, who=who.name)
        self.context.notifier.notify()
        return ConsequencesOut(sentences=sentences, saved=True, changes=bool(consequences))

    def remove_group(self, who: Identity, name: str) -> None:
        require_admin(who)
        self._quotas.remove(name, who=who.name)
        self.context.notifier.notify()

    # -- terms and reservations -----------------------------------------------------------

    def put_term(self, who: Identity, name: str, body: TermIn) -> None:
        require_admin(who)
        self.calendar.put_term(name, body.first, body.last, who=who.name)
        self.context.notifier.notify()

    def remove_term(self, who: Identity, name: str) -> None:
        require_admin(who)
        self.calendar.remove_term(name, who=who.name)
        self.context.notifier.notify()

    def preview_reservation(
        self, who: Identity, body: ReservationIn, *, replaces: str = ""
    ) -> ReservationPreview:
        require_admin(who)
        return self.calendar.preview(body, who=who.name, replaces=replaces)

    def reserve(self, who: Identity, body: ReservationIn) -> ReservationOut:
        require_admin(who)
        reservation = self.calendar.reserve(body, who=who.name)
        self.context.notifier.notify()
        return reservation

    def change_reservation(self, who: Identity, name: str, body: ReservationIn) -> ReservationOut:
        require_admin(who)
        reservation = self.calendar.change_reservation(name, body, who=who.name)
        self.context.notifier.notify()
        return reservation

    def unreserve(self, who: Identity, name: str) -> None:
        require_admin(who)
        self.calendar.unreserve(name, who=who.name)
        self.context.notifier.notify()

    @property
    def calendar(self) -> GroupCalendar:
        return GroupCalendar(self.context.store, self.context.clock)

    # -- announcements --------------------------------------------------------------------

    def announcements(self, who: Identity) -> list[AnnouncementOut]:
        require_admin(who)
        return self._announcements.all()

    def announce(self, who: Identity, body: AnnouncementIn) -> AnnouncementOut:
        require_admin(who)
        return self._announcements.add(body, who=who.name)

    def remove_announcement(self, who: Identity, name: str) -> None:
        require_admin(who)
        self._announcements.remove(name, who=who.name)

    # -- people ---------------------------------------------------------------------------

    def people(self, who: Identity) -> PeopleOut:
        require_admin(who)
        return self.users.all()

    def add_person(self, who: Identity, body: PersonIn) -> PasswordOut:
        require_admin(who)
        password = self.users.add(body.name, admin=body.admin, groups=body.groups, who=who.name)
        return PasswordOut(name=normalise(body.name), password=password)

    def person(self, who: Identity, name: str) -> PersonOut:
        require_admin(who)
        return self.users.one(name)

    def set_roles(
        self, who: Identity, name: str, body: PersonRolesIn, *, dry_run: bool = False
    ) -> ConsequencesOut:
        """Change groups and roles of a user and return the effect; a dry run saves nothing."""
        require_admin(who)
        c = self.context
        roles = UserRoles(c.store, c.clock, c.hub, self.own_accounts)
        change = roles.change(name, body, who=who.name)
        effect = list(roles.sentences(change))
        if effect and not dry_run:
            roles.save(change, who=who.name)
            c.notifier.notify()
        return ConsequencesOut(
            sentences=effect or ["Nothing changes."], saved=not dry_run, changes=bool(effect)
        )

    def reset_password(self, who: Identity, name: str) -> PasswordOut:
        require_admin(who)
        return PasswordOut(name=name, password=self.users.set_password(name, who=who.name))

    def make_link(self, who: Identity, name: str) -> PasswordLinkOut:
        """Return a one-time link, by which the user sets a password."""
        require_admin(who)
        code = self.users.make_link(name, who=who.name)
        until = self.context.clock() + LINK_SECONDS
        return PasswordLinkOut(name=name, code=code, expires_at=until)

    def import_people(self, who: Identity, table: str, *, dry_run: bool = False) -> PeopleImportOut:
        """Create the accounts of a table; a dry run saves nothing."""
        require_admin(who)
        c = self.context
        accounts = check_own_accounts(self.own_accounts)
        people = PeopleImport(c.store, c.clock, c.hub, accounts)
        return people.preview(table) if dry_run else people.save(table, who=who.name)

    def remove_person(self, who: Identity, name: str) -> None:
        require_admin(who)
        self.users.remove(name, who=who.name)

    # -- nodes and devices ----------------------------------------------------------------

    def nodes(self, who: Identity) -> list[NodeOut]:
        require_admin(who)
        return self._pool.nodes()

    def drain(
        self, who: Identity, target: str, body: DrainIn, *, dry_run: bool = False
    ) -> ConsequencesOut:
        require_admin(who)
        sentences = self._pool.drain(
            target, why=body.why.strip(), until=body.until, who=who.name, dry_run=dry_run
        )
        return ConsequencesOut(sentences=list(sentences), saved=not dry_run)

    def undrain(self, who: Identity, target: str) -> ConsequencesOut:
        require_admin(who)
        return _done(self._pool.undrain(target, who=who.name))

    def quarantine(self, who: Identity, target: str, body: QuarantineIn) -> ConsequencesOut:
        require_admin(who)
        why = body.why.strip()
        if not why:
            raise InvalidInput(
                "A quarantine needs a reason.",
                accepted="Say what is wrong with the device.",
                field="why",
            )
        return _done(self._pool.quarantine(target, why=why, who=who.name))

    def release(self, who: Identity, target: str) -> ConsequencesOut:
        require_admin(who)
        return _done(self._pool.release(target, who=who.name))

    # -- audit log ------------------------------------------------------------------------

    @property
    def audit_log(self) -> AuditLog:
        return AuditLog(self.context.store)

    # -- services ---------------------------------------------------------------------------

    @property
    def _announcements(self) -> Announcements:
        return Announcements(self.context.store, self.context.clock)

    @property
    def _quotas(self) -> GroupQuotas:
        return GroupQuotas(self.context.store, self.context.clock)

    @property
    def _pool(self) -> NodeMaintenance:
        return NodeMaintenance(
            self.context.store, self.context.clock, self.context.notifier, self.context.backend
        )

    @property
    def users(self) -> Users:
        c = self.context
        return Users(c.store, c.clock, c.hub, self.own_accounts, c.compile_caches)

    @property
    def own_accounts(self) -> Accounts | None:
        """Carrel's accounts; None where users sign in in another way."""
        return self.accounts if self.context.hub.uses_accounts() else None


def _done(sentences: tuple[str, ...]) -> ConsequencesOut:
    return ConsequencesOut(sentences=list(sentences), saved=True)
