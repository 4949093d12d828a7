"""Secrets with encrypted values, the sessions that use them, and the tickets of sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Row,
    and_,
    delete,
    func,
    insert,
    or_,
    select,
)
from sqlalchemy import update as update_rows

from ...errors import OverMaximum
from ...interfaces.secrets import SecretKey, StoredSecret
from ...records.audit import AuditEntry
from .marks_and_audit import record_change
from .tables.notifications import notification_channels
from .tables.secrets import secret_tickets, secrets, session_secrets
from .transactions import Transactions

ENCRYPTED: Final[tuple[Column[str], ...]] = (secrets.c.token, notification_channels.c.sealed)
"""The columns with tokens of ``hub.secrets.cipher``, for the rotation of its keys."""


class SqlSecrets:
    """The part of ``SqlStore`` for secrets; every method is one transaction."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def put_secret(self, secret: StoredSecret, *, most: int, change: AuditEntry) -> None:
        self._transactions.write(lambda c: put(c, secret, most, change))

    def secret(self, key: SecretKey) -> StoredSecret | None:
        row = self._transactions.read(lambda c: c.execute(select(secrets).where(_is(key))).first())
        return None if row is None else _secret(row)

    def secrets(self, *, owner: str, groups: Sequence[str]) -> tuple[StoredSecret, ...]:
        return self._transactions.read(lambda c: read(c, owner, groups))

    def use_secret(self, key: SecretKey, *, change: AuditEntry) -> None:
        self._transactions.write(lambda c: use(c, key, change))

    def remove_secret(self, key: SecretKey, *, change: AuditEntry) -> bool:
        return self._transactions.write(lambda c: remove(c, key, change))

    def remove_secrets_of(self, owner: str) -> int:
        query = delete(secrets).where(secrets.c.owner == owner)
        return self._transactions.write(lambda c: int(c.execute(query).rowcount))

    def renew_secrets(self, renew: Callable[[str], str]) -> int:
        return self._transactions.write(lambda c: replace_tokens(c, renew))

    def session_secrets(self, request_id: str) -> tuple[str, ...]:
        query = select(session_secrets.c.uses).where(session_secrets.c.request_id == request_id)
        uses: list[str] | None = self._transactions.read(lambda c: c.scalar(query))
        return tuple(uses or ())

    def put_secret_ticket(self, lease_id: str, token_hash: str) -> None:
        self._transactions.write(lambda c: put_ticket(c, lease_id, token_hash))

    def take_secret_ticket(self, token_hash: str) -> str | None:
        return self._transactions.write(lambda c: take_ticket(c, token_hash))


def put(connection: Connection, secret: StoredSecret, most: int, change: AuditEntry) -> None:
    key = secret.key
    of_holder = and_(secrets.c.owner == key.owner, secrets.c.group_name == key.group)
    others = select(func.count()).select_from(secrets)
    others = others.where(of_holder, secrets.c.name != key.name)
    if (connection.scalar(others) or 0) >= most:
        raise OverMaximum(
            f"{f'The group {key.group} has' if key.group else 'You have'} {most} secrets, which "
            "is the maximum.",
            accepted="Remove one that is not needed any more.",
        )
    connection.execute(delete(secrets).where(_is(key)))
    connection.execute(
        insert(secrets).values(
            owner=key.owner,
            group_name=key.group,
            name=key.name,
            token=secret.token,
            set_by=secret.set_by,
            set_at=secret.set_at,
            used_at=secret.used_at,
            used_by=secret.used_by,
            used_in=secret.used_in,
        )
    )
    record_change(connection, change)


def read(connection: Connection, owner: str, groups: Sequence[str]) -> tuple[StoredSecret, ...]:
    mine = and_(secrets.c.owner == owner, secrets.c.group_name == "")
    of_groups = and_(secrets.c.owner == "", secrets.c.group_name.in_(list(groups)))
    query = select(secrets).where(or_(mine, of_groups) if owner else of_groups)
    rows = connection.execute(query.order_by(secrets.c.group_name, secrets.c.name))
    return tuple(map(_secret, rows))


def use(connection: Connection, key: SecretKey, change: AuditEntry) -> None:
    values = {"used_at": change.at, "used_by": change.who}
    used_in = str(change.after.get("request", ""))
    query = update_rows(secrets).where(_is(key))
    connection.execute(query.values(**values, used_in=used_in))
    record_change(connection, change)


def remove(connection: Connection, key: SecretKey, change: AuditEntry) -> bool:
    removed = bool(connection.execute(delete(secrets).where(_is(key))).rowcount)
    if removed:
        record_change(connection, change)
    return removed


def replace_tokens(connection: Connection, renew: Callable[[str], str]) -> int:
    count = 0
    for column in ENCRYPTED:
        # Tokens are unique: each has a random part of its own.
        for token in connection.scalars(select(column).where(column != "")).all():
            query = update_rows(column.table).where(column == token)
            connection.execute(query.values({column: renew(token)}))
            count += 1
    return count


def put_uses(connection: Connection, request_id: str, uses: Sequence[str]) -> None:
    """Store which secrets a session uses, in the transaction that stores its request."""
    query = insert(session_secrets).values(request_id=request_id, uses=list(uses))
    connection.execute(query)


def put_ticket(connection: Connection, lease_id: str, token_hash: str) -> None:
    connection.execute(delete(secret_tickets).where(secret_tickets.c.lease_id == lease_id))
    connection.execute(insert(secret_tickets).values(lease_id=lease_id, token_hash=token_hash))


def take_ticket(connection: Connection, token_hash: str) -> str | None:
    its = secret_tickets.c.token_hash == token_hash
    lease_id = connection.scalar(select(secret_tickets.c.lease_id).where(its))
    connection.execute(delete(secret_tickets).where(its))
    return lease_id


def _is(key: SecretKey) -> ColumnElement[bool]:
    return and_(
        secrets.c.owner == key.owner,
        secrets.c.group_name == key.group,
        secrets.c.name == key.name,
    )


def _secret(row: Row[*tuple[object, ...]]) -> StoredSecret:
    values = dict(row._mapping)
    key = SecretKey(
        owner=values.pop("owner"), group=values.pop("group_name"), name=values.pop("name")
    )
    return StoredSecret(key=key, **values)
