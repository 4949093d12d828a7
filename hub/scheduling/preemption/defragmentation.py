"""Defragmentation: relocate small work so that a group can use its guarantee on whole nodes.

A request for several devices on one node cannot use free devices that are spread over many nodes.
Smaller work is relocated, as Gandiva migrates jobs (Xiao et al., OSDI 2018).
"""

from __future__ import annotations

from collections.abc import Iterator

from ..model.plan import Reason
from ..model.snapshot import Allocation, PendingRequest
from ..placement.device_pool import DevicePool
from ..placement.gangs import largest_member
from ..queue.queues import rank
from ..quota.guarantees import Entitlement
from ..quota.tree import diverging_group, size
from .cheapest_victims import Candidate
from .reclaim_rounds import PreemptiblePool
from .victim_cost import cost, lost, part

MAX_LOST_SECONDS = 300.0
"""Limit of the work that a relocation may lose, in seconds on each device."""
RELOCATION_SECONDS = 36_000.0
"""Cost of a relocation, in seconds of work on each device; it keeps relocations to a minimum."""


def movable(
    request: PendingRequest, preemptible: PreemptiblePool, entitlement: Entitlement, now: float
) -> Iterator[Candidate]:
    """Yield the allocations that may be relocated for a request.

    1. With the request, its group or one above stays within its guaranteed quota, where the two
       groups diverge.
    2. The allocation is within its own guaranteed quota, and of no higher priority class.
    3. It has whole devices, fewer than the request needs on one node.
    4. It would lose little work.
    """
    tree, member = preemptible.tree, largest_member(request)
    chain, wanted = tree.chain(request.group), size(request.devices, request.share)
    for other, priority in preemptible.parts:
        own = diverging_group(tree.ancestry(other), chain)
        if (
            own is None
            or wanted > entitlement.unused(own.name)
            or entitlement.unused_in_chain(other) < 0
            or rank(priority) < rank(request.priority)
        ):
            continue
        for allocation, gains in preemptible.gains((other, priority), request.model).values():
            if (
                allocation.share is None
                and len(allocation.devices) < member
                and lost(allocation, now) <= part(allocation) * MAX_LOST_SECONDS
            ):
                yield Candidate(
                    allocation=allocation,
                    why=Reason.GUARANTEE,
                    group=own.name,
                    weight=size(len(allocation.devices)),
                    protected=(),
                    cost=cost(allocation, now) + part(allocation) * RELOCATION_SECONDS,
                    gains=gains,
                    relocated=True,
                )


def as_pending(allocation: Allocation, pool: DevicePool, now: float) -> PendingRequest:
    """Return the request that an allocation would be if it were stopped."""
    return PendingRequest(
        id=allocation.request_id,
        kind=allocation.kind,
        owner=allocation.owner,
        group=allocation.group,
        devices=len(allocation.devices),
        seconds=allocation.until - now,
        submitted_at=allocation.since,
        model=pool.model_of(allocation),
        priority=allocation.priority,
        preemptible=allocation.preemptible,
        nodes=allocation.nodes,
    )
