"""Store the last validations of each device."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import Connection, delete, insert, select

from ...store.sql.tables.core import device_validations as rows
from ...store.sql.transactions import Transactions

KEPT: Final = 20
"""Validations of one device that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredValidation:
    """One validation of a device.

    Attributes:
        at: when it ended, in seconds since the epoch.
        evidence: why it was not passed; empty if it was.
    """

    device: str
    at: float
    passed: bool
    rates: Mapping[str, float] = field(default_factory=dict)
    evidence: str = ""


class ValidationStore:
    """The last validations, for the only service that writes them.

    Every method is one transaction at most. What was read is kept: the loop asks every few seconds.
    Safe to use from any thread.
    """

    def __init__(self, transactions: Transactions) -> None:
        self._read = transactions.read
        self._write = transactions.write
        self._lock = threading.Lock()
        self._known: dict[str, tuple[StoredValidation, ...]] | None = None

    def add(self, validation: StoredValidation) -> None:
        """Add a validation, and drop the oldest of its device."""

        def work(connection: Connection) -> None:
            own = rows.c.device_id == validation.device
            connection.execute(delete(rows).where(own, rows.c.at >= validation.at))
            connection.execute(
                insert(rows).values(
                    device_id=validation.device,
                    at=validation.at,
                    passed=validation.passed,
                    rates=dict(validation.rates),
                    evidence=validation.evidence,
                )
            )
            newest = select(rows.c.at).where(own).order_by(rows.c.at.desc()).limit(KEPT)
            kept = connection.scalars(newest).all()
            connection.execute(delete(rows).where(own, rows.c.at < min(kept)))

        with self._lock:
            self._known = None
            self._write(work)

    def all(self) -> Mapping[str, tuple[StoredValidation, ...]]:
        """Return the validations by device, the newest first."""

        def work(connection: Connection) -> dict[str, tuple[StoredValidation, ...]]:
            found: dict[str, tuple[StoredValidation, ...]] = {}
            for row in connection.execute(select(rows).order_by(rows.c.device_id, rows.c.at)):
                stored = StoredValidation(
                    device=row.device_id,
                    at=row.at,
                    passed=row.passed,
                    rates=row.rates,
                    evidence=row.evidence,
                )
                found[stored.device] = (stored, *found.get(stored.device, ()))
            return found

        with self._lock:
            if self._known is None:
                self._known = self._read(work)
            return self._known
