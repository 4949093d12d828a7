"""Terms and reservations: administrators change them (audited), members see them."""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import date, time
from itertools import islice
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

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

WHEN_HELP = "Tue 10:00-12:00 Europe/Berlin, or 2026-12-01 10:00-12:00 Europe/Berlin for one day"
_WHEN = re.compile(
    r"(?P<day>[A-Za-z]{3,9}|\d{4}-\d\d-\d\d)\s+(?P<begins>\d{1,2}:\d\d)\s*-\s*(?P<ends>\d{1,2}:\d\d)"
    r"\s+(?P<zone>[A-Za-z0-9_+/-]{1,64})"
)
_YEAR = 366 * 86400.0
_FORETOLD = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationPreview:
    """What a reservation would mean: its next times, and what speaks against it.

    Attributes:
        pool: how many devices there are.
    """

    problems: tuple[str, ...]
    coming: tuple[ReservedSpan, ...]
    pool: int


@dataclass(frozen=True, slots=True)
class GroupCalendar(AuditTrail):
    """Everything that changes terms or reservations goes through here."""

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
        """Raises InvalidInput."""
        if not re.fullmatch(NAME, name):
            raise InvalidInput(
                f"{name[:80]!r} is not a name that a term can have.",
                accepted="It has 1 to 64 of a to z, 0 to 9, dot, underscore and hyphen.",
                field="name",
            )
        term = Term(name=name, first=day(first, "first"), last=day(last, "last"))
        before = self._term(name)
        if before != term:
            old = {} if before is None else _values(before)
            change = self._change(AuditAction.TERM_SET, name, who, before=old, after=_values(term))
            self.store.put_term(term, change=change)

    def remove_term(self, name: str, *, who: str) -> None:
        """Raises NotFound."""
        before = self._term(name)
        if before is None:
            known = ", ".join(term.name for term in self.store.terms()) or "none yet"
            raise NotFound(f"There is no term {name[:80]}.", accepted=f"Terms: {known}.")
        change = self._change(AuditAction.TERM_REMOVE, name, who, before=_values(before))
        self.store.remove_term(name, change=change)

    def _term(self, name: str) -> Term | None:
        return next((each for each in self.store.terms() if each.name == name), None)

    # -- reservations ---------------------------------------------------------------------

    def reservations(self) -> list[ReservationOut]:
        """Those that are not over, the next one first."""
        now = self.clock()
        found = [self._shown(each, now) for each in self.store.reservations()]
        coming = [each for each in found if each.starts_at is not None]
        return sorted(coming, key=lambda each: (each.starts_at or 0.0, each.id))

    def reservations_for(
        self,
        who: Identity | None,
        membership: Membership,
        *,
        groups_of: Collection[str] | None = None,
    ) -> list[ReservationOut]:
        """List them for this viewer: only members of its group see what one is for.

        ``groups_of``: the viewer's groups where they are known already.
        """
        found = self.reservations()
        if not found or (who is not None and who.admin):
            return found
        mine = membership.names(who, groups_of) | self.store.taught_by(who.name) if who else set()
        return [
            each if each.group in mine else each.model_copy(update={"why": ""}) for each in found
        ]

    def preview(self, body: ReservationIn) -> ReservationPreview:
        """What it would mean. Raises InvalidInput or NotFound as making it would."""
        made, now = self._made("r-new", body), self.clock()
        coming = tuple(islice(made.occurrences(now, now + _YEAR), _FORETOLD))
        return ReservationPreview(
            problems=tuple(self._meaning(made)), coming=coming, pool=self._pool
        )

    @property
    def _pool(self) -> int:
        return len(self.store.devices())

    def reserve(self, body: ReservationIn, *, who: str) -> ReservationOut:
        """Raises InvalidInput or NotFound."""
        made = self._made(f"r-{secrets.token_hex(3)}", body)
        change = self._change(AuditAction.RESERVE, made.group, who, after=_reservation(made))
        self.store.put_reservation(made, change=change)
        return self._shown(made, self.clock())

    def unreserve(self, name: str, *, who: str) -> None:
        """Raises NotFound."""
        before = next((each for each in self.store.reservations() if each.id == name), None)
        if before is None:
            raise NotFound(
                f"There is no reservation {name[:80]}.",
                accepted="`carrel reserve ls` lists them with their ids.",
            )
        was = _reservation(before)
        change = self._change(AuditAction.UNRESERVE, before.group, who, before=was)
        self.store.remove_reservation(name, change=change)

    # -- within ---------------------------------------------------------------------------

    def _made(self, name: str, body: ReservationIn) -> Reservation:
        self.store.group(body.group)
        weekday, single, begins, ends, zone = read_when(body.when)
        today = date.fromtimestamp(self.clock())
        first = single or (day(body.first, "first") if body.first else today)
        if single is None and not body.until:
            raise InvalidInput(
                "A reservation of every week has a last day.",
                accepted="Such as 2027-02-15.",
                field="until",
            )
        last = single or day(body.until, "until")
        made = Reservation(
            id=name,
            group=body.group,
            devices=body.devices,
            weekday=weekday,
            begins=begins,
            ends=ends,
            zone=zone,
            first=first,
            last=last,
            why=body.why.strip(),
        )
        if self._next(made, self.clock()) is None:
            raise InvalidInput(
                f"{made.when} never comes until {last}.",
                accepted="A day that is still to come.",
                field="until",
            )
        return made

    def _meaning(self, made: Reservation) -> Iterator[str]:
        now = self.clock()
        pool = self._pool
        if made.devices > pool:
            yield f"It reserves {made.devices} devices; the pool has {pool}."
        coming = self._next(made, now)
        if coming is None:
            return
        others = [each for each in self.store.reservations() if each.id != made.id]
        beside = sum(
            each.devices
            for each in others
            if any(each.occurrences(coming.starts_at, coming.ends_at))
        )
        if beside and beside + made.devices > pool:
            yield f"At its first time {beside} devices are reserved already, of {pool}."
        group = self.store.group(made.group)
        if made.devices > group_max(group):
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


def read_when(text: str) -> tuple[int | None, date | None, time, time, str]:
    """Weekday or single day, from, to, zone.

    Raises:
        InvalidInput: it is not written so, or there is no such zone.
    """
    found = _WHEN.fullmatch(text.strip())
    accepted = f"Such as: {WHEN_HELP}."
    if found is None:
        raise InvalidInput(f"{text[:80]!r} says no time.", accepted=accepted, field="when")
    named = found["day"][:3].title()
    try:
        single = None if named in WEEKDAYS else day(found["day"], "when")
        begins, ends = (time.fromisoformat(found[part].zfill(5)) for part in ("begins", "ends"))
    except ValueError:
        raise InvalidInput(
            f"{text[:80]!r} says no time.", accepted=accepted, field="when"
        ) from None
    try:
        ZoneInfo(found["zone"])
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(
            f"There is no time zone {found['zone']!r}.",
            accepted="A name such as Europe/Berlin, or UTC.",
            field="when",
        ) from None
    weekday = WEEKDAYS.index(named) if single is None else None
    return weekday, single, begins, ends, found["zone"]


def day(text: str, field: str) -> date:
    """Raises InvalidInput."""
    try:
        found = date.fromisoformat(text.strip())
        parsers.day(found.isoformat())
    except (ValueError, InvalidInput):
        raise InvalidInput(
            f"{text[:40]!r} is no day.", accepted="Such as 2027-02-15.", field=field
        ) from None
    return found


def _values(term: Term) -> dict[str, Json]:
    return {"first": term.first.isoformat(), "last": term.last.isoformat()}


def _reservation(made: Reservation) -> dict[str, Json]:
    return {
        "id": made.id,
        "devices": made.devices,
        "when": made.when,
        "until": made.last.isoformat(),
    }
