"""Accounts with passwords in SQLite, safe for use by several processes at once."""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.schema import CreateTable

from ..errors import CarrelError, Conflict, InvalidInput, NotFound, Unavailable
from ..interfaces.clock import Clock
from . import login_limits, passwords, usernames
from .login_limits import LoginLimits
from .passwords import Cost, Hash
from .tables import accounts, metadata, password_links, password_resets

_UNWRITABLE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR)
_FORGET_SECONDS = 86400.0
LINK_SECONDS = 7 * 86400.0
"""How long a one-time link works."""
_CODE_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    name: str
    admin: bool
    created_at: float
    password_at: float
    """When the password was last set; 0 if it never was."""


class TooManyAttempts(CarrelError):
    """Sign-in is refused for some time, also with the right password."""

    code = "too_many_attempts"
    http_status = 429

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__("Too many failed sign-ins.", accepted=f"Try again in {_span(seconds)}.")


class Accounts:
    """The accounts that ``carrel user`` manages and the authenticator checks."""

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock = time.time,
        cost: Cost | None = None,
        sign_in_limits: LoginLimits | None = None,
    ) -> None:
        self._clock = clock
        self._cost = cost or Cost()
        self._limits = sign_in_limits or LoginLimits()
        self._decoy = passwords.decoy(self._cost)
        self._settled = threading.Condition()
        self._in_progress = 0
        """Sign-ins of this process whose password is being checked."""
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)
        self._engine = sa.create_engine(
            sa.URL.create("sqlite", database=str(path)), connect_args={"timeout": 15.0}
        )
        sa.event.listen(self._engine, "connect", _disable_autobegin)
        sa.event.listen(self._engine, "begin", _begin_for_writing)
        with self._engine.begin() as connection:
            for table in metadata.sorted_tables:
                connection.execute(CreateTable(table, if_not_exists=True))

    def close(self) -> None:
        self._engine.dispose()

    # -- administration -------------------------------------------------------------------

    def add(self, name: str, password: str, *, admin: bool, cost: Cost | None = None) -> Account:
        """Create an account. Raises Conflict if it exists, InvalidInput for name or password.

        Args:
            cost: of this password's hash; by default that of all.
        """
        name = usernames.parse_name(name)
        passwords.check_new(password)
        hashed = passwords.hash_password(password, cost or self._cost)
        now = self._clock()
        with self._transaction() as connection:
            if _row(connection, name) is not None:
                raise Conflict(
                    f"There is an account {name} already.",
                    accepted=f"Change its password with: carrel user passwd {name}",
                )
            connection.execute(
                sa.insert(accounts).values(
                    name=name, admin=admin, created_at=now, password_at=now, **_columns(hashed)
                )
            )
        return Account(name=name, admin=admin, created_at=now, password_at=now)

    def add_without_password(self, roles: Mapping[str, bool]) -> None:
        """Create accounts without a password: a sign-in works only after a link has set one.

        All or none of them: raises Conflict if one exists, InvalidInput for an invalid name.

        Args:
            roles: by name, whether the account is that of an administrator.
        """
        for name in roles:
            usernames.check_name(name)
        now = self._clock()
        with self._transaction() as connection:
            known = set(connection.scalars(sa.select(accounts.c.name)))
            if exists := sorted(known & roles.keys()):
                raise Conflict(f"There is an account {exists[0]} already.")
            for name, admin in roles.items():
                connection.execute(
                    sa.insert(accounts).values(
                        name=name,
                        admin=admin,
                        created_at=now,
                        password_at=0.0,
                        **_columns(passwords.decoy(self._cost)),
                    )
                )

    def make_links(self, names: Iterable[str]) -> Mapping[str, str]:
        """Make a one-time link for each account, and return its secret code by name.

        An earlier link of the account stops working. Raises NotFound.
        """
        codes = {usernames.parse_name(name): secrets.token_urlsafe(_CODE_BYTES) for name in names}
        with self._transaction() as connection:
            until = self._clock() + LINK_SECONDS
            for name, code in codes.items():
                if _row(connection, name) is None:
                    raise self._unknown(connection, name)
                connection.execute(sa.delete(password_links).where(password_links.c.name == name))
                connection.execute(
                    sa.insert(password_links).values(
                        name=name, code_hash=_hash_of(code), expires_at=until
                    )
                )
        return codes

    def use_link(self, code: str, password: str) -> str:
        """Set the password of the account of a link, which works once; return its name.

        Raises:
            NotFound: the link is unknown, was used, or has expired.
            InvalidInput: for the password; the link still works.
        """
        passwords.check_new(password)
        link = sa.and_(
            password_links.c.code_hash == _hash_of(code),
            password_links.c.expires_at > self._clock(),
        )
        with self._transaction() as connection:
            name = connection.scalar(sa.select(password_links.c.name).where(link))
        if name is None:
            raise _no_link()
        hashed = passwords.hash_password(password, self._cost)
        with self._transaction() as connection:
            if connection.execute(sa.delete(password_links).where(link)).rowcount == 0:
                raise _no_link()  # used meanwhile
            self._set_hash(connection, name, hashed)
        return str(name)

    def change_password(self, name: str, current: str, password: str) -> None:
        """Set a new password of a user who knows the current one.

        Raises:
            InvalidInput: the current password is wrong, or the new one too short or too long.
            TooManyAttempts: after several wrong ones, as at the sign-in.
        """
        passwords.check_new(password)
        if self.sign_in(name, current) is None:
            raise InvalidInput(
                "The current password is wrong.",
                accepted="Enter the password with which you sign in now.",
                field="current",
            )
        self.set_password(name, password)

    def set_password(self, name: str, password: str) -> None:
        """Set the password, forget failed sign-ins, and have earlier sign-ins ended.

        Raises:
            NotFound: the account does not exist.
        """
        name = usernames.parse_name(name)
        passwords.check_new(password)
        hashed = passwords.hash_password(password, self._cost)
        with self._transaction() as connection:
            self._set_hash(connection, name, hashed)

    def _set_hash(self, connection: sa.Connection, name: str, hashed: Hash) -> None:
        now = self._clock()
        changed = connection.execute(
            sa.update(accounts)
            .where(accounts.c.name == name)
            .values(password_at=now, **_columns(hashed))
        )
        if changed.rowcount == 0:
            raise self._unknown(connection, name)
        connection.execute(sa.delete(password_links).where(password_links.c.name == name))
        login_limits.succeed(connection, name, "")
        _end_sign_ins(connection, name, now)

    def set_admin(self, name: str, *, admin: bool) -> None:
        """Set the role; the sign-ins of a former administrator are to be ended. Raises NotFound."""
        name = usernames.parse_name(name)
        with self._transaction() as connection:
            changed = connection.execute(
                sa.update(accounts).where(accounts.c.name == name).values(admin=admin)
            )
            if changed.rowcount == 0:
                raise self._unknown(connection, name)
            if not admin:
                _end_sign_ins(connection, name, self._clock())

    def password_resets(self) -> Mapping[str, float]:
        """Return the users whose earlier sign-ins are to be ended, and since when.

        Their password was reset, or they are no longer administrators.
        """
        with self._transaction() as connection:
            rows = connection.execute(sa.select(password_resets))
            return {row.name: row.reset_at for row in rows}

    def forget_resets(self, ended: Mapping[str, float]) -> None:
        """Note that these sign-ins have ended; a later reset of the same user stays."""
        with self._transaction() as connection:
            for name, reset_at in ended.items():
                connection.execute(
                    sa.delete(password_resets).where(
                        password_resets.c.name == name, password_resets.c.reset_at == reset_at
                    )
                )

    def remove(self, name: str) -> None:
        """Delete an account. Raises NotFound."""
        name = usernames.parse_name(name)
        with self._transaction() as connection:
            connection.execute(sa.delete(password_links).where(password_links.c.name == name))
            gone = connection.execute(sa.delete(accounts).where(accounts.c.name == name))
            if gone.rowcount == 0:
                raise self._unknown(connection, name)

    def find(self, name: str) -> Account | None:
        with self._transaction() as connection:
            row = _row(connection, usernames.normalise(name))
            return None if row is None else _account(row)

    def all(self) -> tuple[Account, ...]:
        """Return all accounts by name."""
        with self._transaction() as connection:
            rows = connection.execute(sa.select(accounts).order_by(accounts.c.name))
            return tuple(_account(row) for row in rows)

    # -- sign-in --------------------------------------------------------------------------

    def sign_in(self, name: str, password: str, *, address: str = "") -> Account | None:
        """Return the account if the password is right, else None after the same time.

        Raises:
            TooManyAttempts: the password was not checked.
        """
        name = usernames.normalise(name)[:200]
        with self._attempt(name, address) as row:
            # Outside the transaction: hashing takes long and would block other sign-ins.
            right = passwords.matches(password, self._decoy if row is None else _hash(row))
            if row is None or not right:
                return None
            with self._transaction() as connection:
                login_limits.succeed(connection, name, address)
            return _account(row)

    @contextmanager
    def _attempt(self, name: str, address: str) -> Iterator[sa.Row[tuple[object, ...]] | None]:
        """Count an attempt and give the row of the account. Raises TooManyAttempts.

        An attempt counts as a failure until its password turns out right. An attempt that would be
        refused therefore waits first for those in progress, which may all be right.
        """
        with self._settled:
            wait, row = self._begin(name, address)
            while wait > 0 and self._in_progress:
                self._settled.wait()
                wait, row = self._begin(name, address)
            if wait > 0:
                raise TooManyAttempts(wait)
            self._in_progress += 1
        try:
            yield row
        finally:
            with self._settled:
                self._in_progress -= 1
                self._settled.notify_all()

    def _begin(self, name: str, address: str) -> tuple[float, sa.Row[tuple[object, ...]] | None]:
        with self._transaction() as connection:
            # Read inside the transaction: time passes while an attempt waits for the lock.
            now = self._clock()
            login_limits.forget_before(connection, now - _FORGET_SECONDS)
            wait = login_limits.begin(connection, self._limits.keys(name, address), now)
            return wait, _row(connection, name) if usernames.is_valid(name) else None

    @contextmanager
    def _transaction(self) -> Iterator[sa.Connection]:
        """Raises Unavailable if the disk is full or read-only."""
        try:
            with self._engine.begin() as connection:
                yield connection
        except sa.exc.OperationalError as error:
            code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
            if code not in _UNWRITABLE:
                raise
            raise Unavailable(
                "The accounts cannot be written: the server's disk is full or read-only.",
                accepted="An administrator must free space; then try again.",
            ) from error

    def _unknown(self, connection: sa.Connection, name: str) -> NotFound:
        known = connection.scalars(sa.select(accounts.c.name).order_by(accounts.c.name)).all()
        listed = ", ".join(known[:20]) + (", …" if len(known) > 20 else "")  # noqa: PLR2004
        return NotFound(
            f"There is no account {name}.",
            accepted=f"Accounts: {listed}." if known else "There are no accounts yet.",
        )


def _disable_autobegin(connection: object, _record: object) -> None:
    # The driver would begin transactions late and for reading; see _begin_for_writing.
    connection.isolation_level = None  # type: ignore[attr-defined]  # sqlite3.Connection


def _begin_for_writing(connection: sa.Connection) -> None:
    # Take the write lock at once, so that no other process counts between read and write.
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _row(connection: sa.Connection, name: str) -> sa.Row[tuple[object, ...]] | None:
    return connection.execute(sa.select(accounts).where(accounts.c.name == name)).first()


def _hash_of(code: str) -> str:
    return hashlib.sha256(code.encode("utf-8", "replace")).hexdigest()


def _no_link() -> NotFound:
    return NotFound(
        "This link does not work: it was used, has expired, or was replaced by a newer one.",
        accepted="Ask an administrator for a new link.",
    )


def _end_sign_ins(connection: sa.Connection, name: str, now: float) -> None:
    """Note that the authenticator has to end the earlier sign-ins of this user."""
    connection.execute(sa.delete(password_resets).where(password_resets.c.name == name))
    connection.execute(sa.insert(password_resets).values(name=name, reset_at=now))


def _columns(hashed: Hash) -> dict[str, object]:
    return {
        "salt": hashed.salt,
        "key": hashed.key,
        "scrypt_n": hashed.cost.n,
        "scrypt_r": hashed.cost.r,
        "scrypt_p": hashed.cost.p,
    }


def _hash(row: sa.Row[tuple[object, ...]]) -> Hash:
    cost = Cost(n=row.scrypt_n, r=row.scrypt_r, p=row.scrypt_p)
    return Hash(salt=row.salt, key=row.key, cost=cost)


def _account(row: sa.Row[tuple[object, ...]]) -> Account:
    return Account(
        name=row.name, admin=row.admin, created_at=row.created_at, password_at=row.password_at
    )


def _span(seconds: float) -> str:
    whole = max(1, round(seconds + 0.5))
    if whole < 60:  # noqa: PLR2004  # seconds of a minute
        return f"{whole} second{'' if whole == 1 else 's'}"
    minutes = -(-whole // 60)
    return f"{minutes} minute{'' if minutes == 1 else 's'}"
