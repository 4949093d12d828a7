"""Groups that a user can choose from, cached for the live parts of pages.

Opening a page reads them from JupyterHub, unless that was done in the last few seconds. The live
parts of a page must not call JupyterHub after every change: they show the groups of the opened
page.
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
    """Groups by user, for display only: admission reads them from JupyterHub."""

    membership: Membership
    clock: Clock
    _known: dict[str, tuple[float, Choices]] = field(default_factory=dict)

    def current(self, who: Identity) -> Choices:
        """Return the current groups, at most a few seconds old."""
        return self._since(who, self.clock() - _OPENED_SECONDS)

    def recent(self, who: Identity) -> Choices:
        """Return the groups as read in the last five minutes."""
        return self._since(who, self.clock() - _LIVE_SECONDS)

    def names(self, who: Identity) -> frozenset[str]:
        """Return the names of the recent groups."""
        return frozenset(group.name for group in self.recent(who))

    def _since(self, who: Identity, earliest: float) -> Choices:
        read_at, choices = self._known.get(who.name, (-inf, []))
        if read_at <= earliest:
            read_at, choices = self.clock(), self.membership.choices(who)
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[who.name] = (read_at, choices)
        return choices
