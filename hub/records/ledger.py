"""Ledger entries, and usage summed from them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class LedgerKind(StrEnum):
    CHARGE = "charge"
    CREDIT = "credit"
    """Reverts all charges of a lease whose device failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """Device-seconds charged for one interval of one lease. Entries are never changed or deleted.

    A credit has a negative number, so that the sum of all entries is the charge.
    """

    id: int
    lease_id: str
    request_id: str
    epoch: int
    owner: str
    group: str
    devices: int
    starts_at: float
    ends_at: float
    device_seconds: float
    kind: LedgerKind = LedgerKind.CHARGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Device-seconds of one owner in one group: ``charged`` in the ledger, ``open`` since then."""

    owner: str
    group: str
    charged: float
    open: float

    @property
    def total(self) -> float:
        return self.charged + self.open
