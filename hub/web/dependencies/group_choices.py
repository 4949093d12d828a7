"""Groups that a user can choose from, cached for the live parts of pages.

JupyterHub is asked when a page is opened, but not again within a few seconds. The live parts of a
page must not ask it after every change: they show the groups of the opened page.
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
    """For display only: admission asks JupyterHub itself."""

    membership: Membership
    clock: Clock
    _known: dict[str, tuple[float, Choices]] = field(default_factory=dict)

    def now(self, who: Identity) -> Choices:
        """Return the groups of this moment, at most some seconds old."""
        return self._since(who, self.clock() - _OPENED_SECONDS)

    def lately(self, who: Identity) -> Choices:
        """Return the groups of the last minutes."""
        return self._since(who, self.clock() - _LIVE_SECONDS)

    def names(self, who: Identity) -> frozenset[str]:
        """Like ``lately``, for users who only read."""
        return frozenset(group.name for group in self.lately(who))

    def _since(self, who: Identity, earliest: float) -> Choices:
        asked_at, found = self._known.get(who.name, (-inf, []))
        if asked_at <= earliest:
            asked_at, found = self.clock(), self.membership.choices(who)
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[who.name] = (asked_at, found)
        return found
