"""Store the outbox, and read what the collector turns into entries of it.

An entry and the position up to which events were read are stored in one transaction: after a crash
no event is missed, and none is put into the outbox of a channel twice. An entry is marked as sent
after the message was accepted, so that a crash between the two sends a message again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from sqlalchemy import Connection, delete, func, insert, or_, select, update

from ..schemas.notifications.events import NotificationEvent
from ..store.sql.tables.core import events, requests, schedules
from ..store.sql.tables.courses import feedback, submissions
from ..store.sql.tables.notifications import (
    notification_channels,
    notification_messages,
    notification_outbox,
    notification_positions,
)
from ..store.sql.transactions import Transactions
from ..store.sql.upserts import insert_new, put_row
from .records import (
    NewEntry,
    OutboxCensus,
    OutboxEntry,
    OutboxState,
    PausedSchedule,
    ReleasedFeedback,
    RequestEvent,
)

MOST_WAITING: Final = 5000
"""Waiting entries of a channel, after which further ones are dropped at once."""
_EVENTS: Final = "events"
_DAY: Final = 86400.0


class OutboxStore:
    """Entries by channel; every method is one transaction."""

    def __init__(self, transactions: Transactions) -> None:
        self._read = transactions.read
        self._write = transactions.write

    # -- what happened --------------------------------------------------------------------

    def position(self) -> int:
        """Return the id of the last event that was read; at first, that of the newest event."""

        def work(connection: Connection) -> int:
            same = notification_positions.c.source == _EVENTS
            query = select(notification_positions.c.position).where(same)
            found = connection.scalar(query)
            if found is None:
                found = _newest_event(connection)
                insert_new(
                    connection, notification_positions, {"source": _EVENTS, "position": found}
                )
            return int(found)

        return self._write(work)

    def newest_event(self) -> int:
        """Return the id of the newest event; 0 without one."""
        return self._read(_newest_event)

    def events_after(
        self, position: int, owners: Collection[str], kinds: Collection[str], *, limit: int
    ) -> tuple[tuple[RequestEvent, ...], int]:
        """Return events of these kinds and owners, oldest first, and the new position."""
        query = (
            select(events, requests.c.owner)
            .join(requests, requests.c.id == events.c.request_id)
            .where(events.c.id > position, events.c.kind.in_(kinds))
            .where(requests.c.owner.in_(owners))
            .order_by(events.c.id)
            .limit(limit)
        )

        def work(connection: Connection) -> tuple[tuple[RequestEvent, ...], int]:
            newest = _newest_event(connection)
            found = tuple(
                RequestEvent(
                    id=row.id,
                    request_id=row.request_id,
                    epoch=row.epoch,
                    owner=row.owner,
                    at=row.at,
                    kind=row.kind,
                    data=row.data,
                )
                for row in connection.execute(query)
            )
            return found, found[-1].id if len(found) == limit else max(newest, position)

        return self._read(work)

    def feedback_since(self, owners: Collection[str], since: float) -> tuple[ReleasedFeedback, ...]:
        """Return the feedback that was released to these users at this time or later."""
        query = (
            select(
                submissions.c.id,
                submissions.c.person,
                submissions.c.course,
                submissions.c.assignment,
                feedback.c.released_at,
            )
            .join(feedback, feedback.c.submission == submissions.c.id)
            .where(feedback.c.released_at >= since, submissions.c.person.in_(owners))
            .order_by(feedback.c.released_at)
        )
        return tuple(
            ReleasedFeedback(
                submission=row.id,
                owner=row.person,
                course=row.course,
                assignment=row.assignment,
                released_at=row.released_at,
            )
            for row in self._read(lambda c: c.execute(query).all())
        )

    def schedules_paused_since(
        self, owners: Collection[str], since: float
    ) -> tuple[PausedSchedule, ...]:
        """Return the schedules of these users that the service paused at this time or later."""
        query = (
            select(schedules.c.id, schedules.c.owner, schedules.c.what, schedules.c.paused_at)
            .where(schedules.c.paused_at >= since, schedules.c.owner.in_(owners))
            .order_by(schedules.c.paused_at, schedules.c.number)
        )
        rows = self._read(lambda c: c.execute(query).all())
        return tuple(PausedSchedule(**row._mapping) for row in rows)

    def put(self, entries: Sequence[NewEntry], *, position: int | None = None) -> int:
        """Store new entries and the position together; return how many were not known."""

        def work(connection: Connection) -> int:
            room = dict[str, int]()
            added = 0
            for entry in entries:
                if entry.channel not in room:
                    room[entry.channel] = MOST_WAITING - _waiting(connection, entry.channel)
                if room[entry.channel] <= 0:
                    continue
                if insert_new(connection, notification_outbox, _values(entry)):
                    room[entry.channel] -= 1
                    added += 1
            if position is not None:
                values = {"source": _EVENTS, "position": position}
                put_row(connection, notification_positions, values, "source")
            return added

        return self._write(work)

    # -- delivery -------------------------------------------------------------------------

    def due(self, now: float, *, pause: float) -> tuple[str, ...]:
        """Return the channels with an entry that is due, the longest due first.

        Args:
            pause: seconds since the last message of the channel before which only an entry counts
                that was due at the time of its event.
        """
        query = (
            select(notification_outbox.c.channel)
            .join(
                notification_channels,
                notification_channels.c.id == notification_outbox.c.channel,
            )
            .where(
                notification_outbox.c.state == str(OutboxState.WAITING),
                notification_outbox.c.due_at <= now,
                notification_channels.c.next_at <= now,
                or_(
                    notification_outbox.c.due_at <= notification_outbox.c.at,
                    notification_channels.c.last_sent_at.is_(None),
                    notification_channels.c.last_sent_at <= now - pause,
                ),
            )
            .group_by(notification_outbox.c.channel)
            .order_by(func.min(notification_outbox.c.due_at), notification_outbox.c.channel)
        )
        return tuple(self._read(lambda c: c.scalars(query).all()))

    def waiting(self, channel: str) -> tuple[OutboxEntry, ...]:
        """Return all waiting entries of a channel, oldest first."""
        return self._select(channel, OutboxState.WAITING)

    def dropped(self, owner: str, *, limit: int) -> tuple[OutboxEntry, ...]:
        """Return the newest entries of a user that were given up, the newest first."""
        of_owner = select(notification_channels.c.id).where(notification_channels.c.owner == owner)
        query = (
            select(notification_outbox)
            .where(
                notification_outbox.c.channel.in_(of_owner),
                notification_outbox.c.state == str(OutboxState.DROPPED),
            )
            .order_by(notification_outbox.c.id.desc())
            .limit(limit)
        )
        return tuple(map(_entry, self._read(lambda c: c.execute(query).all())))

    def finish(self, ids: Iterable[int], state: OutboxState, *, now: float, why: str = "") -> None:
        """Mark waiting entries as sent or dropped."""
        query = (
            update(notification_outbox)
            .where(notification_outbox.c.id.in_(list(ids)))
            .values(state=str(state), why=why, done_at=now)
        )
        self._write(lambda c: c.execute(query))

    def record_message(self, owner: str, now: float) -> None:
        """Count a message for the limit of a day."""
        query = insert(notification_messages).values(owner=owner, at=now)
        self._write(lambda c: c.execute(query))

    def messages_of_day(self, owner: str, now: float) -> int:
        """Return how many messages were sent to a user in the last 24 hours."""
        query = select(func.count()).where(
            notification_messages.c.owner == owner, notification_messages.c.at > now - _DAY
        )
        return int(self._read(lambda c: c.scalar(query)) or 0)

    def forget(self, before: float) -> None:
        """Delete finished entries, and counted messages, of before this time."""

        def work(connection: Connection) -> None:
            done = notification_outbox.c.state != str(OutboxState.WAITING)
            old = notification_outbox.c.done_at < before
            connection.execute(delete(notification_outbox).where(done, old))
            old = notification_messages.c.at < before
            connection.execute(delete(notification_messages).where(old))

        self._write(work)

    def census(self) -> OutboxCensus:
        """Return the numbers of the metrics."""

        def work(connection: Connection) -> OutboxCensus:
            by_state = select(notification_outbox.c.state, func.count()).group_by(
                notification_outbox.c.state
            )
            oldest = select(func.min(notification_outbox.c.due_at)).where(
                notification_outbox.c.state == str(OutboxState.WAITING)
            )
            failing = select(func.count()).where(notification_channels.c.problem != "")
            found = {OutboxState(state): count for state, count in connection.execute(by_state)}
            return OutboxCensus(
                entries=found,
                oldest_due=connection.scalar(oldest),
                failing=int(connection.scalar(failing) or 0),
            )

        return self._read(work)

    def counts(self, channels: Collection[str]) -> Mapping[str, int]:
        """Return the number of waiting entries of each of these channels that has any."""
        query = (
            select(notification_outbox.c.channel, func.count())
            .where(
                notification_outbox.c.channel.in_(channels),
                notification_outbox.c.state == str(OutboxState.WAITING),
            )
            .group_by(notification_outbox.c.channel)
        )
        return {row[0]: row[1] for row in self._read(lambda c: c.execute(query).all())}

    def _select(self, channel: str, state: OutboxState) -> tuple[OutboxEntry, ...]:
        query = (
            select(notification_outbox)
            .where(
                notification_outbox.c.channel == channel,
                notification_outbox.c.state == str(state),
            )
            .order_by(notification_outbox.c.id)
        )
        return tuple(map(_entry, self._read(lambda c: c.execute(query).all())))


def _newest_event(connection: Connection) -> int:
    return int(connection.scalar(select(func.max(events.c.id))) or 0)


def _waiting(connection: Connection, channel: str) -> int:
    query = select(func.count()).where(
        notification_outbox.c.channel == channel,
        notification_outbox.c.state == str(OutboxState.WAITING),
    )
    return int(connection.scalar(query) or 0)


def _values(entry: NewEntry) -> dict[str, object]:
    return {
        "channel": entry.channel,
        "event": str(entry.event),
        "key": entry.key,
        "text": entry.text,
        "path": entry.path,
        "at": entry.at,
        "due_at": entry.due_at,
        "expires_at": entry.expires_at,
        "state": str(OutboxState.WAITING),
        "why": "",
    }


def _entry(row: object) -> OutboxEntry:
    values = dict(row._mapping)  # type: ignore[attr-defined]  # a row of SQLAlchemy
    event, state = NotificationEvent(values.pop("event")), OutboxState(values.pop("state"))
    return OutboxEntry(**values, event=event, state=state)
