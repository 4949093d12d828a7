"""The groups that a person may choose from, remembered for the parts of a page that are live.

Asked of the hub when a page is opened, but not again within a few seconds. A part of a page that
comes again with every change in the pool must not ask the hub each time: it shows what the page
was opened with.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from ...groups.membership import GroupChoice, Membership
from ...interfaces.clock import Clock
from ...records.identity import Identity

_OPENED_SECONDS = 5.0
_LIVE_SECONDS = 300.0
_MOST = 5_000

Choices = list[GroupChoice]


@dataclass(frozen=True, slots=True)
class GroupChoiceCache:
    """For display only: admission asks the hub itself."""

    membership: Membership
    clock: Clock
    _known: dict[str, tuple[float, Choices]] = field(default_factory=dict)

    def now(self, who: Identity) -> Choices:
        """As the hub has them at this moment, or had them some seconds ago."""
        return self._since(who, self.clock() - _OPENED_SECONDS)

    def lately(self, who: Identity) -> Choices:
        """As they were in the last minutes."""
        return self._since(who, self.clock() - _LIVE_SECONDS)

    def names(self, who: Identity) -> frozenset[str]:
        """As ``lately``, of those who only look."""
        return frozenset(group.name for group in self.lately(who))

    def _since(self, who: Identity, earliest: float) -> Choices:
        asked_at, found = self._known.get(who.name, (-inf, []))
        if asked_at <= earliest:
            asked_at, found = self.clock(), self.membership.choices(who)
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[who.name] = (asked_at, found)
        return found
