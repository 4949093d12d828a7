"""What those that ask for devices back share in one cycle: what is free and held, and by whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from .entitled import guarantees
from .model import Holding, PriorityClass
from .placement import Pool
from .quota import Tally, Tree

Inside: TypeAlias = dict[str, tuple[Holding, Mapping[int, int]]]
"""Holdings by id, with the devices that each has by number of the node."""


class Ground:
    """The pool without what was asked to go, and everything that may be asked.

    Attributes:
        anybody: whether anything may be asked, or was.
    """

    def __init__(self, pool: Pool, tally: Tally, tree: Tree, holdings: Iterable[Holding]) -> None:
        self.tree, self.guaranteed = tree, guarantees(tree.groups)
        self.pool, self.tally = pool.copy(), tally.copy()
        self._stays: dict[str, Holding] = {}
        self._gains: dict[str | None, dict[tuple[str, PriorityClass], Inside]] = {}
        self.anybody = False
        for holding in holdings:
            if holding.leaving:
                self.anybody = True
                self._leave(holding)
            elif holding.preemptible and holding.devices:
                self._stays[holding.request_id] = holding
        self.anybody = self.anybody or bool(self._stays)

    def leave(self, request_ids: Iterable[str]) -> None:
        """These were asked now."""
        for request_id in request_ids:
            holding = self._stays.pop(request_id)
            self._leave(holding)
            for by_group in self._gains.values():
                by_group.get((holding.group, holding.priority), {}).pop(request_id, None)

    def gains(self, model: str | None) -> Mapping[tuple[str, PriorityClass], Inside]:
        """What may be asked and has devices of this model, by group and class."""
        found = self._gains.get(model)
        if found is None:
            found = self._gains[model] = {}
            for holding in self._stays.values():
                gains = self.pool.gains(holding, model)
                if gains:
                    inside = found.setdefault((holding.group, holding.priority), {})
                    inside[holding.request_id] = (holding, gains)
        return found

    def _leave(self, holding: Holding) -> None:
        self.pool.give_back(holding)
        self.tally.count(holding, -1)
