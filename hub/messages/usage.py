"""Column heads and rows of usage tables, the same on the page and the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ..schemas import LedgerOut, UsageRowOut

HEADS: Mapping[str, str] = MappingProxyType(
    {
        "user": "User",
        "group": "Group",
        "model": "Model",
        "day": "Day",
        "week": "Week from",
        "term": "Term",
    }
)
"""Heads of the first column; tables by owner and by request have several."""
OWN = "Own use"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageLine:
    """A row of a usage table; ``depth`` is the number of groups above it in the table."""

    name: str
    depth: int
    row: UsageRowOut


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargedAttempt:
    """The ledger entries of one attempt, oldest first; ``devices`` is the largest number."""

    lease_id: str
    entries: tuple[LedgerOut, ...]

    @property
    def request_id(self) -> str:
        return self.entries[0].request_id

    @property
    def group(self) -> str:
        return self.entries[0].group

    @property
    def devices(self) -> int:
        return max(entry.devices for entry in self.entries)

    @property
    def starts_at(self) -> float:
        return min(entry.starts_at for entry in self.entries)

    @property
    def ends_at(self) -> float:
        return max(entry.ends_at for entry in self.entries)

    @property
    def device_seconds(self) -> float:
        return sum(entry.device_seconds for entry in self.entries)


def attempts(ledger: Sequence[LedgerOut]) -> list[ChargedAttempt]:
    """Collect ledger entries by attempt, the one with the newest entry last."""
    by_lease: dict[str, list[LedgerOut]] = {}
    for entry in sorted(ledger, key=lambda entry: entry.id):
        by_lease[entry.lease_id] = [*by_lease.pop(entry.lease_id, []), entry]
    return [ChargedAttempt(lease_id=name, entries=tuple(of)) for name, of in by_lease.items()]


def lines(by: str, rows: Sequence[UsageRowOut]) -> list[UsageLine]:
    """Name the rows of a table and indent groups below their parents."""
    depths: dict[str, int] = {}
    found = []
    for row in rows:
        depth = depths[row.above] + 1 if row.above in depths else 0
        depths[row.group] = depth
        found.append(UsageLine(name=_name(by, row), depth=depth if by == "group" else 0, row=row))
    return found


def _name(by: str, row: UsageRowOut) -> str:
    match by:
        case "user":
            return row.owner
        case "group":
            return row.group
        case "model":
            return row.model or "unknown"
        case "week":
            return row.week
        case "term":
            return row.term or "outside terms"
        case _:
            return row.day
