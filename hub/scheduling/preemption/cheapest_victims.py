"""Search for the cheapest set of victims."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..model.plan import Reason
from ..model.snapshot import Allocation

MAX_STEPS = 2000
"""Limit of the search on one node; past it the best set found so far is used."""


@dataclass(slots=True, eq=False, kw_only=True)
class Candidate:
    """An allocation that may be preempted.

    It is not frozen, for speed: every selection creates one for each such allocation.

    Attributes:
        why: ``GUARANTEE`` or ``BEHIND_OTHERS``, as in a ``Stop``.
        group: the group that reclaims, or that of the urgent request.
        weight: its devices, in thousandths.
        protected: the groups that must keep their guaranteed quotas without it.
        cost: of preempting it, in device-seconds.
        gains: by node: how many devices of the wanted model it holds.
        relocated: it is within its guaranteed quota, and restarts elsewhere.
    """

    allocation: Allocation
    why: Reason
    group: str
    weight: int
    protected: tuple[str, ...]
    cost: float
    gains: Mapping[int, int]
    relocated: bool = False


Chosen = tuple[Candidate, ...]

Surplus = dict[str, int]
"""Thousandths of a device that a group holds above its guaranteed quota, by group."""


def surplus_allows(candidate: Candidate, surplus: Surplus) -> bool:
    return all(surplus[group] >= candidate.weight for group in candidate.protected)


def deduct(candidate: Candidate, surplus: Surplus, times: int = 1) -> None:
    for group in candidate.protected:
        surplus[group] -= times * candidate.weight


def by_cost(candidate: Candidate) -> tuple[float, str]:
    return (candidate.cost, candidate.allocation.request_id)


def cheapest_on_one_node(
    candidates: Iterable[Candidate], need: Callable[[int], int], surplus: Surplus
) -> Chosen | None:
    """Return the cheapest set of victims that frees enough devices on one node; None if none does.

    Branch and bound, by:

    1. least cost
    2. fewest victims
    3. the first node
    4. the first ids

    Args:
        need: number of devices that a node lacks.
    """
    by_node: dict[int, list[tuple[int, Candidate]]] = defaultdict(list)
    for candidate in sorted(candidates, key=by_cost):
        for node, gain in candidate.gains.items():
            by_node[node].append((gain, candidate))
    search = _Search(surplus)
    for node in sorted(by_node):
        lacking = need(node)
        if sum(gain for gain, _ in by_node[node]) >= lacking:
            search.on(by_node[node], lacking)
    return search.best


class _Search:
    """Branch and bound over the candidates of one node after the other."""

    def __init__(self, surplus: Surplus) -> None:
        self.best: Chosen | None = None
        self._cost = (0.0, 0)
        self._surplus = dict(surplus)

    def on(self, inside: Sequence[tuple[int, Candidate]], need: int) -> None:
        """Search for a cheaper set among the candidates of one node, which are sorted by cost."""
        if self.best is not None and (inside[0][1].cost, 1) >= self._cost:
            return
        self._inside, self._steps = inside, 0
        self._most = max(gain for gain, _ in inside)
        self._sums = [0.0]
        for _, candidate in inside:
            self._sums.append(self._sums[-1] + candidate.cost)
        self._deeper(0, (), 0.0, need)

    def _deeper(self, start: int, chosen: Chosen, cost: float, need: int) -> None:
        if need <= 0:
            self.best, self._cost = chosen, (cost, len(chosen))
            return
        least = -(-need // self._most)
        for at in range(start, len(self._inside) - least + 1):
            bound = cost + self._sums[at + least] - self._sums[at]
            if self.best is not None and (bound, len(chosen) + least) >= self._cost:
                return
            self._steps += 1
            if self.best is not None and self._steps > MAX_STEPS:
                return
            gain, candidate = self._inside[at]
            if surplus_allows(candidate, self._surplus):
                deduct(candidate, self._surplus)
                self._deeper(at + 1, (*chosen, candidate), cost + candidate.cost, need - gain)
                deduct(candidate, self._surplus, -1)


def cheapest_first(
    candidates: Iterable[Candidate], surplus: Surplus, enough: Callable[[Chosen], bool]
) -> Chosen | None:
    """Add the cheapest candidates one after the other until they are enough.

    For gangs, where finding the cheapest set is intractable; used with ``drop_unneeded``.
    """
    left = dict(surplus)
    allowed: list[Candidate] = []
    for candidate in sorted(candidates, key=by_cost):
        if surplus_allows(candidate, left):
            deduct(candidate, left)
            allowed.append(candidate)
    if not enough(tuple(allowed)):
        return None
    low, high = 0, len(allowed)
    while low < high:
        middle = (low + high) // 2
        if enough(tuple(allowed[:middle])):
            high = middle
        else:
            low = middle + 1
    return tuple(allowed[:low])


def drop_unneeded(chosen: Chosen, enough: Callable[[Chosen], bool]) -> Chosen:
    """Drop victims that are not needed, the costliest first.

    Kueue fills back workloads in the same way (``preemption.go``).
    """
    for candidate in sorted(chosen, key=by_cost, reverse=True):
        without = tuple(each for each in chosen if each is not candidate)
        if enough(without):
            chosen = without
    return chosen
