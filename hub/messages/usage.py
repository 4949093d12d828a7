"""What a sum of device-seconds is of, in the words of the command and the page alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ..schemas import UsageRowOut

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
"""What a table has in its first column; by owner and by request, there are several."""
OWN = "Its own"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageLine:
    """A row of such a table; ``depth`` is how many groups are above it there."""

    name: str
    depth: int
    row: UsageRowOut


def lines(by: str, rows: Sequence[UsageRowOut]) -> list[UsageLine]:
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
            return row.model or "no longer known"
        case "week":
            return row.week
        case "term":
            return row.term or "in no term"
        case _:
            return row.day
