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
from ..quota.tree import parting, size
from .reclaim_rounds import PreemptiblePool
from .victim_search import Candidate, cost, lost, part

MOST_LOST = 300.0
"""Seconds of work on each of its devices that moving something may cost."""
MOVING = 36_000.0
"""Seconds of work on each device that moving counts for: no more is moved than has to be."""


def movable(
    request: PendingRequest, ground: PreemptiblePool, entitled: Entitlement, now: float
) -> Iterator[Candidate]:
    """What may be moved for a request.

    1. its group, or one above, stays within its guarantee with it, where the two groups part
    2. what is moved is within a guarantee of its own, and of no better class
    3. it is smaller than what is asked for on one node, and has whole devices
    4. it would lose little
    """
    tree, member = ground.tree, largest_member(request)
    chain, wanted = tree.chain(request.group), size(request.devices, request.share)
    for other, priority in ground.parts:
        own = parting(tree.known(other), chain)
        if (
            own is None
            or wanted > entitled.left_of(own.name)
            or entitled.left(other) < 0
            or rank(priority) < rank(request.priority)
        ):
            continue
        for holding, gains in ground.gains((other, priority), request.model).values():
            if (
                holding.share is None
                and len(holding.devices) < member
                and lost(holding, now) <= part(holding) * MOST_LOST
            ):
                yield Candidate(
                    holding=holding,
                    why=Reason.GUARANTEE,
                    group=own.name,
                    weight=size(len(holding.devices)),
                    keeps=(),
                    cost=cost(holding, now) + part(holding) * MOVING,
                    gains=gains,
                    moved=True,
                )


def again(holding: Allocation, pool: DevicePool, now: float) -> PendingRequest:
    """What runs, as it would be asked for if it were stopped."""
    return PendingRequest(
        id=holding.request_id,
        kind=holding.kind,
        owner=holding.owner,
        group=holding.group,
        devices=len(holding.devices),
        seconds=holding.until - now,
        submitted_at=holding.since,
        model=pool.model_of(holding),
        priority=holding.priority,
        preemptible=holding.preemptible,
        nodes=holding.nodes,
    )
