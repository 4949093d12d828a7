"""Keep the table of each leaderboard until it has another verdict.

Each page reads its table every few seconds, and a class has hundreds of pages open.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from .standings import Standing


@dataclass(frozen=True, slots=True, eq=False)
class TableCache:
    """The newest table by leaderboard and order; usable from any thread."""

    _tables: dict[Hashable, tuple[Hashable, Sequence[Standing]]] = field(default_factory=dict)

    def table(
        self, key: Hashable, version: Hashable, make: Callable[[], Sequence[Standing]]
    ) -> Sequence[Standing]:
        """Return the table of this version, which is made unless it is the newest one."""
        known = self._tables.get(key)
        if known is not None and known[0] == version:
            return known[1]
        made = make()
        self._tables[key] = version, made
        return made
