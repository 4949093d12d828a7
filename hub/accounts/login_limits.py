"""Sign-in limits: after some failures a name or an address has to wait, longer every time.

An attempt counts as a failure before the password is checked; the count is reverted if the
password was right. So parallel attempts through several processes do not evade the limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from .tables import attempts


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The number of failures before a wait, and the length of the wait.

    Attributes:
        failures: number of failures within ``window`` that starts the wait.
        window: seconds without an attempt after which the failures are forgotten.
        first_wait: seconds; doubled by every further failure.
        longest_wait: seconds.
    """

    failures: int
    window: float = 300.0
    first_wait: float = 30.0
    longest_wait: float = 900.0

    def wait_after(self, failures: int) -> float:
        if failures < self.failures:
            return 0.0
        doublings = min(failures - self.failures, 16)
        return min(self.first_wait * 2.0**doublings, self.longest_wait)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginLimits:
    """The limits by name and by address.

    The limit by address is higher, since a whole class may share one address.
    """

    per_name: Limit = Limit(failures=5)
    per_address: Limit = Limit(failures=20)

    def keys(self, name: str, address: str) -> Mapping[str, Limit]:
        found = {f"name:{name}": self.per_name}
        if address:
            found[f"address:{address}"] = self.per_address
        return found


def begin(connection: sa.Connection, keys: Mapping[str, Limit], now: float) -> float:
    """Count an attempt; return the seconds until one is accepted, 0 if this one is."""
    rows = {
        row.key: row
        for row in connection.execute(sa.select(attempts).where(attempts.c.key.in_(keys)))
        # A row from the future was written before the clock was set back: it counts no more.
        if row.last_at <= now
    }
    wait = max((row.wait_until - now for row in rows.values()), default=0.0)
    if wait > 0:
        return wait
    for key, limit in keys.items():
        row = rows.get(key)
        fresh = row is None or now - max(row.last_at, row.wait_until) > limit.window
        failures = 1 if fresh or row is None else row.failures + 1
        wait = limit.wait_after(failures)
        connection.execute(sa.delete(attempts).where(attempts.c.key == key))
        connection.execute(
            sa.insert(attempts).values(
                key=key,
                failures=failures,
                last_at=now,
                wait_until=now + wait if wait else 0.0,
            )
        )
    return 0.0


def succeed(connection: sa.Connection, name: str, address: str) -> None:
    """Forget the failures of the name, and this attempt in the count of the address."""
    connection.execute(sa.delete(attempts).where(attempts.c.key == f"name:{name}"))
    connection.execute(
        sa.update(attempts)
        .where(attempts.c.key == f"address:{address}", attempts.c.failures > 0)
        .values(failures=attempts.c.failures - 1, wait_until=0.0)
    )


def forget_before(connection: sa.Connection, moment: float) -> None:
    """Delete expired rows, so that invented names do not fill the table."""
    connection.execute(
        sa.delete(attempts).where(attempts.c.last_at < moment, attempts.c.wait_until < moment)
    )
