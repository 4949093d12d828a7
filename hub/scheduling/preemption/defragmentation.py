"""Work within its guarantee that may be moved, so that others have the whole nodes they are owed.

A group is guaranteed devices, and whoever needs several on one node can use nothing else: what is
smaller gives way, as Gandiva moves jobs to keep nodes whole (Xiao et al., OSDI 2018).
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
from .reclaim_rounds import PreemptiblePool
from .victim_search import Candidate, cost, lost, part

MAX_LOST_SECONDS = 300.0
"""Seconds of work on each of its devices that moving something may cost."""
RELOCATION_SECONDS = 36_000.0
"""Seconds of work on each device that moving counts for: no more is moved than has to be."""


def movable(
    request: PendingRequest, preemptible: PreemptiblePool, entitlement: Entitlement, now: float
) -> Iterator[Candidate]:
    """What may be moved for a request.

    1. its group, or one above, stays within its guarantee with it, where the two groups part
    2. what is moved is within a guarantee of its own, and of no better class
    3. it is smaller than what is asked for on one node, and has whole devices
    4. it would lose little
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
    """What runs, as it would be asked for if it were stopped."""
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
