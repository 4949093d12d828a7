"""Terms and reservations: administrators change them (audited), members see them."""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import date, time
from itertools import islice

from ..errors import InvalidInput, NotFound
from ..records.audit import AuditAction
from ..records.calendar import WEEKDAYS, Reservation, Term
from ..records.identity import Identity
from ..records.json_value import Json
from ..runtime.audit_trail import AuditTrail
from ..scheduling.model.snapshot import ReservedSpan
from ..scheduling.quota.tree import group_max
from ..schemas import NAME, parsers
from ..schemas.calendar import ReservationIn, ReservationOut, TermOut
from .membership import Membership

WHEN_HELP = (
    "Tue 10:00-12:00 Europe/Berlin, Mon,Wed for several days, or 2026-12-01 for a single one"
)
_WHEN = re.compile(
    r"(?P<day>[A-Za-z]{3,9}(?:\s*,\s*[A-Za-z]{3,9})*|\d{4}-\d\d-\d\d)\s+(?P<begins>\d{1,2}:\d\d)\s*-\s*(?P<ends>\d{1,2}:\d\d)"
    r"\s+(?P<zone>[A-Za-z0-9_+/-]{1,64})"
)
_YEAR = 366 * 86400.0
_PREVIEWED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationPreview:
    """The consequences of a reservation before it is made.

    Attributes:
        problems: sentences on conflicts with the pool, other reservations and the quota.
        coming: its next occurrences.
        pool: number of devices in the pool.
    """

    problems: tuple[str, ...]
    coming: tuple[ReservedSpan, ...]
    pool: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationTimes:
    """The times of a reservation as users type them: weekdays or a single day, and local hours."""

    weekdays: tuple[int, ...]
    single: date | None
    begins: time
    ends: time
    zone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedTime:
    """One occurrence of a reservation in a calendar, with its reason if the viewer may see it."""

    span: ReservedSpan
    why: str


@dataclass(frozen=True, slots=True)
class GroupCalendar(AuditTrail):
    """Lists and changes terms and reservations; every change is audited."""

    # -- terms ----------------------------------------------------------------------------

    def terms(self) -> list[TermOut]:
        now = self.clock()
        return [
            TermOut(
                name=term.name,
                first=term.first.isoformat(),
                last=term.last.isoformat(),
                running=term.starts_at <= now < term.ends_at,
            )
            for term in self.store.terms()
        ]

    def put_term(self, name: str, first: str, last: str, *, who: str) -> None:
        """Create or change a term. Raises InvalidInput."""
        if not re.fullmatch(NAME, name):
            raise InvalidInput(
                f"{name[:80]!r} is not a valid name of a term.",
                accepted="Use 1 to 64 of a to z, 0 to 9, dot, underscore and hyphen.",
                field="name",
            )
        term = Term(name=name, first=day(first, "first"), last=day(last, "last"))
        before = self._term(name)
        if before != term:
            old = {} if before is None else _values(before)
            change = self._change(AuditAction.TERM_SET, name, who, before=old, after=_values(term))
            self.store.put_term(term, change=change)

    def remove_term(self, name: str, *, who: str) -> None:
        """Delete a term. Raises NotFound."""
        self._check_unchanged(AuditAction.TERM_REMOVE, name, who)
        before = self._term(name)
        if before is None:
            known = ", ".join(term.name for term in self.store.terms()) or "none yet"
            raise NotFound(f"There is no term {name[:80]}.", accepted=f"Terms: {known}.")
        change = self._change(AuditAction.TERM_REMOVE, name, who, before=_values(before))
        self.store.remove_term(name, change=change)

    def _term(self, name: str) -> Term | None:
        return next((term for term in self.store.terms() if term.name == name), None)

    # -- reservations ---------------------------------------------------------------------

    def reservations(self) -> list[ReservationOut]:
        """Return the reservations that are not over, by their next start."""
        now = self.clock()
        known = [self._shown(reservation, now) for reservation in self.store.reservations()]
        coming = [reservation for reservation in known if reservation.starts_at is not None]
        return sorted(coming, key=lambda shown: (shown.starts_at or 0.0, shown.id))

    def reservations_for(
        self,
        who: Identity | None,
        membership: Membership,
        *,
        groups_of: Collection[str] | None = None,
    ) -> list[ReservationOut]:
        """Return the reservations as this viewer sees them.

        Only administrators and members of a reservation's group see its reason.
        ``groups_of``: the viewer's groups, if the caller knows them already.
        """
        found = self.reservations()
        if not found or (who is not None and who.admin):
            return found
        mine = self._reasons_of(who, membership, groups_of)
        return [
            shown if shown.group in mine else shown.model_copy(update={"why": ""})
            for shown in found
        ]

    def occurrences_for(
        self, who: Identity, membership: Membership, since: float, until: float
    ) -> list[ReservedTime]:
        """Return the occurrences between two moments as this viewer sees them, by start."""
        known = self.store.reservations()
        if not known:
            return []
        groups = {each.group for each in known}
        mine = groups if who.admin else self._reasons_of(who, membership)
        found = [
            ReservedTime(span=span, why=each.why if each.group in mine else "")
            for each in known
            for span in each.occurrences(since, until)
        ]
        return sorted(found, key=lambda each: (each.span.starts_at, each.span.id))

    def _reasons_of(
        self,
        who: Identity | None,
        membership: Membership,
        groups_of: Collection[str] | None = None,
    ) -> Collection[str]:
        """Return the groups whose reasons a viewer sees who is no administrator."""
        if who is None:
            return ()
        return membership.names(who, groups_of) | self.store.taught_by(who.name)

    def reservation(self, name: str) -> ReservationOut:
        """Raises NotFound."""
        return self._shown(self._known(name), self.clock())

    def preview(self, body: ReservationIn, *, who: str, replaces: str = "") -> ReservationPreview:
        """Return the consequences of a reservation. Raises what ``reserve`` raises.

        ``replaces``: id of the reservation that it changes.
        """
        old = self._known(replaces) if replaces else None
        reservation, now = self._parsed(replaces or "r-new", body, old), self.clock()
        self._check_unchanged(AuditAction.RESERVE, reservation.group, who, before=_values_of(old))
        coming = tuple(islice(reservation.occurrences(now, now + _YEAR), _PREVIEWED))
        return ReservationPreview(
            problems=tuple(self._problems(reservation)), coming=coming, pool=self._pool
        )

    @property
    def _pool(self) -> int:
        return len(self.store.devices())

    def reserve(self, body: ReservationIn, *, who: str) -> ReservationOut:
        """Create a reservation. Raises InvalidInput, or NotFound for an unknown group."""
        reservation = self._parsed(f"r-{secrets.token_hex(3)}", body)
        change = self._change(
            AuditAction.RESERVE, reservation.group, who, after=_values_of(reservation)
        )
        self.store.put_reservation(reservation, change=change)
        return self._shown(reservation, self.clock())

    def change_reservation(self, name: str, body: ReservationIn, *, who: str) -> ReservationOut:
        """Change a reservation; without a first day it keeps its own.

        Raises:
            NotFound: the reservation or the group does not exist.
            InvalidInput: the times are invalid.
        """
        before = {"id": name}
        self._check_unchanged(AuditAction.RESERVE, body.group, who, before=before)
        old = self._known(name)
        new = self._parsed(name, body, old)
        if new != old:
            change = self._change(
                AuditAction.RESERVE, new.group, who, before=_values_of(old), after=_values_of(new)
            )
            self.store.put_reservation(new, change=change)
        return self._shown(new, self.clock())

    def unreserve(self, name: str, *, who: str) -> None:
        """Delete a reservation. Raises NotFound."""
        self._check_unchanged(AuditAction.UNRESERVE, "", who, before={"id": name})
        before = self._known(name)
        change = self._change(AuditAction.UNRESERVE, before.group, who, before=_values_of(before))
        self.store.remove_reservation(name, change=change)

    def _known(self, name: str) -> Reservation:
        found = next((each for each in self.store.reservations() if each.id == name), None)
        if found is None:
            raise NotFound(
                f"There is no reservation {name[:80]}.",
                accepted="`carrel reserve ls` lists them with their ids.",
            )
        return found

    def _parsed(
        self, name: str, body: ReservationIn, old: Reservation | None = None
    ) -> Reservation:
        self.store.group(body.group)
        times = read_when(body.when)
        today = old.first if old else date.fromtimestamp(self.clock())
        first = times.single or (day(body.first, "first") if body.first else today)
        if times.single is None and not body.until:
            raise InvalidInput(
                "A weekly reservation needs a last day.",
                accepted="A date such as 2027-02-15.",
                field="until",
            )
        last = times.single or day(body.until, "until")
        reservation = Reservation(
            id=name,
            group=body.group,
            devices=body.devices,
            weekdays=times.weekdays,
            begins=times.begins,
            ends=times.ends,
            zone=times.zone,
            first=first,
            last=last,
            why=body.why.strip(),
        )
        if self._next(reservation, self.clock()) is None:
            raise InvalidInput(
                f"{reservation.when} does not occur between now and {last}.",
                accepted="A later last day.",
                field="until",
            )
        return reservation

    def _problems(self, reservation: Reservation) -> Iterator[str]:
        now = self.clock()
        pool = self._pool
        if reservation.devices > pool:
            yield f"It reserves {reservation.devices} devices; the pool has {pool}."
        coming = self._next(reservation, now)
        if coming is None:
            return
        concurrent = sum(
            other.devices
            for other in self.store.reservations()
            if other.id != reservation.id
            and any(other.occurrences(coming.starts_at, coming.ends_at))
        )
        if concurrent and concurrent + reservation.devices > pool:
            yield f"At its first time {concurrent} of {pool} devices are reserved already."
        group = self.store.group(reservation.group)
        if reservation.devices > group_max(group):
            yield f"{group.name} may hold {group_max(group)} devices at one time."

    def _next(self, reservation: Reservation, now: float) -> ReservedSpan | None:
        return next(reservation.occurrences(now, now + _YEAR), None)

    def _shown(self, reservation: Reservation, now: float) -> ReservationOut:
        coming = self._next(reservation, now)
        return ReservationOut(
            id=reservation.id,
            group=reservation.group,
            devices=reservation.devices,
            when=reservation.when,
            first=reservation.first.isoformat(),
            until=reservation.last.isoformat(),
            why=reservation.why,
            starts_at=coming.starts_at if coming else None,
            ends_at=coming.ends_at if coming else None,
            running=coming is not None and coming.starts_at <= now,
        )


def read_when(text: str) -> ReservationTimes:
    """Parse the times of a reservation, ``Mon,Wed 10:00-12:00 Europe/Berlin``.

    Raises:
        InvalidInput: the text has another form, or the time zone is unknown.
    """
    found = _WHEN.fullmatch(text.strip())
    refused = InvalidInput(
        f"{text[:80]!r} is not a time.", accepted=f"Such as: {WHEN_HELP}.", field="when"
    )
    if found is None:
        raise refused
    named = {name.strip()[:3].title() for name in found["day"].split(",")}
    weekly = named <= set(WEEKDAYS)
    try:
        single = None if weekly else day(found["day"], "when")
        begins, ends = (time.fromisoformat(found[part].zfill(5)) for part in ("begins", "ends"))
    except ValueError:
        raise refused from None
    try:
        parsers.time_zone(found["zone"])
    except InvalidInput as error:
        error.field = "when"
        raise
    return ReservationTimes(
        weekdays=tuple(n for n, name in enumerate(WEEKDAYS) if weekly and name in named),
        single=single,
        begins=begins,
        ends=ends,
        zone=found["zone"],
    )


def day(text: str, field: str) -> date:
    """Parse a date. Raises InvalidInput."""
    try:
        found = date.fromisoformat(text.strip())
        parsers.day(found.isoformat())
    except (ValueError, InvalidInput):
        raise InvalidInput(
            f"{text[:40]!r} is not a date.", accepted="A date such as 2027-02-15.", field=field
        ) from None
    return found


def _values(term: Term) -> dict[str, Json]:
    return {"first": term.first.isoformat(), "last": term.last.isoformat()}


def _values_of(reservation: Reservation | None) -> dict[str, Json]:
    if reservation is None:
        return {}
    return {
        "id": reservation.id,
        "devices": reservation.devices,
        "when": reservation.when,
        "until": reservation.last.isoformat(),
    }
