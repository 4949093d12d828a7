"""What those that ask for devices back share in one cycle: what is free and held, and by whom."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from copy import copy
from typing import TypeAlias

from ..model.snapshot import Allocation, PriorityClass
from ..placement.device_pool import DevicePool
from ..quota.tree import GroupTree, Tally, guarantees

Part: TypeAlias = tuple[str, PriorityClass]
"""The work of a group in one class."""
Inside: TypeAlias = dict[str, tuple[Allocation, Mapping[int, int]]]
"""Holdings by id, with the devices that each has by number of the node."""


class PreemptiblePool:
    """The pool without what was asked to go, and everything that may be asked."""

    def __init__(
        self,
        pool: DevicePool,
        tally: Tally,
        tree: GroupTree,
        holdings: Iterable[Allocation],
        reserved: Mapping[str, int],
    ) -> None:
        """``reserved``: devices by group, of reservations of this moment."""
        self.tree, self.guaranteed, self.reserved = tree, guarantees(tree.groups), reserved
        self.pool, self.tally = pool.copy(), tally.copy()
        self._where: dict[str, Part] = {}
        self._stays: dict[Part, dict[str, Allocation]] = {}
        self._gains: dict[tuple[str | None, Part], Inside] = {}
        for holding in holdings:
            if holding.leaving:
                self._leave(holding)
            elif holding.preemptible and holding.devices:
                part = self._where[holding.request_id] = (holding.group, holding.priority)
                self._stays.setdefault(part, {})[holding.request_id] = holding

    def next_to(self, pool: DevicePool, tally: Tally) -> PreemptiblePool:
        """A copy in which this is free and held."""
        made = copy(self)
        made.pool, made.tally = pool.copy(), tally.copy()
        made._where = self._where.copy()
        made._stays = {part: inside.copy() for part, inside in self._stays.items()}
        made._gains = {}
        return made

    def leave(self, request_ids: Iterable[str]) -> None:
        """These were asked now."""
        for request_id in request_ids:
            part = self._where.pop(request_id)
            self._leave(self._stays[part].pop(request_id))
            for (_, other), inside in self._gains.items():
                if other == part:
                    inside.pop(request_id, None)

    @property
    def parts(self) -> Collection[Part]:
        """Those of which anything may be asked, or could be until it was asked."""
        return self._stays.keys()

    def priority(self, request_id: str) -> PriorityClass:
        """The class of what may still be asked."""
        return self._where[request_id][1]

    def gains(self, part: Part, model: str | None) -> Inside:
        """What may be asked of a part and has devices of this model."""
        found = self._gains.get((model, part))
        if found is None:
            found = self._gains[model, part] = {}
            for request_id, holding in self._stays[part].items():
                gains = self.pool.gains(holding, model)
                if gains:
                    found[request_id] = (holding, gains)
        return found

    def _leave(self, holding: Allocation) -> None:
        self.pool.give_back(holding)
        self.tally.count(holding, -1)
