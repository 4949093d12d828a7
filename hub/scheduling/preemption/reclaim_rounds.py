"""Rounds of preemption: place requests on devices that become free, and preempt for the rest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from ..model.plan import Stop
from ..model.snapshot import Allocation, PendingRequest, PriorityClass
from ..placement.device_pool import DevicePool, Placement, Shape, shape
from ..placement.gangs import least
from ..quota.tree import GroupTree, Tally, guarantees

Part: TypeAlias = tuple[str, PriorityClass]
"""The allocations of a group in one priority class."""
Inside: TypeAlias = dict[str, tuple[Allocation, Mapping[int, int]]]
"""Allocations by request id, with their numbers of devices by node."""


class PreemptiblePool:
    """The pool without the allocations that are leaving, and all candidates for preemption."""

    def __init__(
        self,
        pool: DevicePool,
        tally: Tally,
        tree: GroupTree,
        allocations: Iterable[Allocation],
        reserved: Mapping[str, int],
    ) -> None:
        """``reserved``: devices of due reservations, by group."""
        self.tree, self.guaranteed, self.reserved = tree, guarantees(tree.groups), reserved
        self.pool, self.tally = pool.copy(), tally.copy()
        self._where: dict[str, Part] = {}
        self._stays: dict[Part, dict[str, Allocation]] = {}
        self._gains: dict[tuple[str | None, Part], Inside] = {}
        for allocation in allocations:
            if allocation.leaving:
                self._leave(allocation)
            elif allocation.preemptible and allocation.devices:
                part = self._where[allocation.request_id] = (allocation.group, allocation.priority)
                self._stays.setdefault(part, {})[allocation.request_id] = allocation

    def next_to(self, pool: DevicePool, tally: Tally) -> PreemptiblePool:
        """Return a copy with another pool and tally."""
        clone = copy(self)
        clone.pool, clone.tally = pool.copy(), tally.copy()
        clone._where = self._where.copy()
        clone._stays = {part: inside.copy() for part, inside in self._stays.items()}
        clone._gains = {}
        return clone

    def preempt(self, request_ids: Iterable[str]) -> None:
        """Mark these allocations as leaving."""
        for request_id in request_ids:
            part = self._where.pop(request_id)
            self._leave(self._stays[part].pop(request_id))
            for (_, other), inside in self._gains.items():
                if other == part:
                    inside.pop(request_id, None)

    @property
    def parts(self) -> Collection[Part]:
        """Groups and priority classes with candidates, including those that were preempted."""
        return self._stays.keys()

    def priority(self, request_id: str) -> PriorityClass:
        """Return the priority class of a candidate."""
        return self._where[request_id][1]

    def gains(self, part: Part, model: str | None) -> Inside:
        """Return the candidates of a part that have devices of this model."""
        found = self._gains.get((model, part))
        if found is None:
            found = self._gains[model, part] = {}
            for request_id, allocation in self._stays[part].items():
                gains = self.pool.gains(allocation, model)
                if gains:
                    found[request_id] = (allocation, gains)
        return found

    def _leave(self, allocation: Allocation) -> None:
        self.pool.release(allocation)
        self.tally.count(allocation, -1)


OwnerShape = tuple[str, str, PriorityClass, Shape]
ClaimShape = tuple[str, PriorityClass, Shape]
"""A group, class and shape, for any owner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReclaimPlan:
    """The preemptions of one cycle.

    Attributes:
        placements: preemptors, also those of earlier notices, with the devices that they will get.
        early: stops whose preemptor had to preempt again, because a request ahead of it took the
            devices.
    """

    stops: tuple[Stop, ...] = ()
    placements: Mapping[str, Placement] = field(default_factory=dict)
    early: tuple[Stop, ...] = field(default=(), compare=False)


class ReclaimClaim:
    """A request that may reclaim, and its forms, each as it is and with its minimum of members."""

    def __init__(self, request: PendingRequest, forms: Iterable[PendingRequest]) -> None:
        self.request, self.least = request, least(request)
        self.forms = tuple((form, least(form)) for form in forms)
        self.alike: ClaimShape = (request.group, request.priority, shape(request))
        self.kind: OwnerShape = (request.owner, *self.alike)


class VictimSelector(Protocol):
    """The steps of a round, as ``victim_selection.VictimSelection`` implements them."""

    def in_order(self, claims: Iterable[ReclaimClaim]) -> Iterator[ReclaimClaim]: ...

    def take(self, claim: ReclaimClaim) -> Placement | None: ...

    def victims(self, claim: ReclaimClaim) -> tuple[Stop, ...]: ...

    def give_up(self, claim: ReclaimClaim) -> None: ...


def reclaim_rounds(
    claims: Sequence[ReclaimClaim],
    preemptible: PreemptiblePool,
    select: Callable[[], VictimSelector],
    is_free: Callable[[ReclaimClaim, Placement], bool],
) -> ReclaimPlan:
    """Select victims in rounds (steps 1 to 4 of ``reclaim.reclaim``)."""
    stops: list[Stop] = []
    early: list[Stop] = []
    while True:
        selection = select()
        preemptors = {stop.for_request for stop in stops}
        placements: dict[str, Placement] = {}
        found: tuple[Stop, ...] = ()
        for claim in selection.in_order(claims):
            if placed := selection.take(claim):
                if claim.request.id in preemptors or not is_free(claim, placed):
                    placements[claim.request.id] = placed
            elif found := selection.victims(claim):
                break
            else:
                selection.give_up(claim)
        if not found:
            return ReclaimPlan(stops=tuple(stops), placements=placements, early=tuple(early))
        preemptor = found[0].for_request
        early += (each for each in stops if each.for_request == preemptor and each not in early)
        stops += found
        preemptible.preempt(stop.request_id for stop in found)
