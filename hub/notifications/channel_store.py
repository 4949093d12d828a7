"""Store channels and the events that they tell of; every method is one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from sqlalchemy import Connection, delete, func, insert, select, update

from ..errors import NotFound, OverMaximum
from ..schemas.notifications.events import NotificationEvent
from ..store.sql.tables.notifications import (
    notification_channels,
    notification_choices,
    notification_outbox,
)
from ..store.sql.transactions import Transactions
from .records import Channel

MOST_CHANNELS = 10
"""The maximum number of channels of a user."""


class ChannelStore:
    """Channels by owner. Methods with an ``owner`` raise NotFound for channels of other users."""

    def __init__(self, transactions: Transactions) -> None:
        self._read = transactions.read
        self._write = transactions.write

    def channels(self, owner: str) -> tuple[Channel, ...]:
        """Return the channels of a user, oldest first."""
        return self._read(lambda c: _select(c, notification_channels.c.owner == owner))

    def channel(self, channel_id: str) -> Channel | None:
        """Return a channel; None if it was removed."""
        found = self._read(lambda c: _select(c, notification_channels.c.id == channel_id))
        return found[0] if found else None

    def chosen(self) -> Mapping[str, tuple[Channel, ...]]:
        """Return all usable channels with a chosen event, by owner."""
        with_choice = notification_channels.c.id.in_(select(notification_choices.c.channel))
        found = dict[str, tuple[Channel, ...]]()
        for channel in self._read(lambda c: _select(c, with_choice)):
            if channel.usable:
                found[channel.owner] = (*found.get(channel.owner, ()), channel)
        return found

    def add(self, new: Channel) -> None:
        """Store a channel. Raises OverMaximum if the user has too many."""

        def work(connection: Connection) -> None:
            count = select(func.count()).where(notification_channels.c.owner == new.owner)
            if (connection.scalar(count) or 0) >= MOST_CHANNELS:
                raise OverMaximum(
                    f"You have {MOST_CHANNELS} channels, which is the maximum.",
                    accepted="Remove one first.",
                )
            connection.execute(insert(notification_channels).values(**_values(new)))
            _choose(connection, new.id, new.chosen, new.created_at)

        self._write(work)

    def choose(
        self, owner: str, channel_id: str, events: Iterable[NotificationEvent], *, now: float
    ) -> None:
        """Replace the events of a channel; those that it has keep their start."""

        def work(connection: Connection) -> None:
            _own(connection, owner, channel_id)
            _choose(connection, channel_id, events, now)

        self._write(work)

    def remove(self, owner: str, channel_id: str) -> None:
        """Delete a channel with its choices and everything that waits for it."""

        def work(connection: Connection) -> None:
            _own(connection, owner, channel_id)
            _delete(connection, channel_id)

        self._write(work)

    def change(self, channel_id: str, change: Callable[[Channel], Channel]) -> None:
        """Replace the values of a channel, without its choices; one that was removed stays so."""

        def work(connection: Connection) -> None:
            found = _select(connection, notification_channels.c.id == channel_id)
            if found:
                same = notification_channels.c.id == channel_id
                values = _values(change(found[0]))
                connection.execute(update(notification_channels).where(same).values(**values))

        self._write(work)


def _own(connection: Connection, owner: str, channel_id: str) -> None:
    same = notification_channels.c.id == channel_id, notification_channels.c.owner == owner
    if connection.scalar(select(notification_channels.c.id).where(*same)) is None:
        raise NotFound(
            f"You have no channel {channel_id[:64]!r}.",
            accepted="List your channels with: carrel notify list",
        )


def _choose(
    connection: Connection, channel_id: str, events: Iterable[NotificationEvent], now: float
) -> None:
    wanted = {str(event) for event in events}
    of_channel = notification_choices.c.channel == channel_id
    known = set(connection.scalars(select(notification_choices.c.event).where(of_channel)))
    if gone := known - wanted:
        connection.execute(
            delete(notification_choices).where(of_channel, notification_choices.c.event.in_(gone))
        )
        # Waiting entries are not sent either.
        waiting = (
            notification_outbox.c.channel == channel_id,
            notification_outbox.c.state == "waiting",
            notification_outbox.c.event.in_(gone),
        )
        connection.execute(delete(notification_outbox).where(*waiting))
    if added := sorted(wanted - known):
        rows = [{"channel": channel_id, "event": event, "since": now} for event in added]
        connection.execute(insert(notification_choices), rows)


def _delete(connection: Connection, channel_id: str) -> None:
    for table in (notification_outbox, notification_choices):
        connection.execute(delete(table).where(table.c.channel == channel_id))
    connection.execute(
        delete(notification_channels).where(notification_channels.c.id == channel_id)
    )


def _values(channel: Channel) -> dict[str, object]:
    return {column.name: getattr(channel, column.name) for column in notification_channels.columns}


def _select(connection: Connection, condition: object) -> tuple[Channel, ...]:
    query = select(notification_channels).where(condition)  # type: ignore[arg-type]  # a column
    query = query.order_by(notification_channels.c.created_at, notification_channels.c.id)
    rows = connection.execute(query).all()
    choices = dict[str, dict[NotificationEvent, float]]()
    of_rows = notification_choices.c.channel.in_([row.id for row in rows])
    for row in connection.execute(select(notification_choices).where(of_rows)):
        choices.setdefault(row.channel, {})[NotificationEvent(row.event)] = row.since
    return tuple(Channel(**row._mapping, chosen=choices.get(row.id, {})) for row in rows)
