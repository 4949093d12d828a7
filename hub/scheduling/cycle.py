"""The scheduling cycle: one snapshot in, one plan out."""

from __future__ import annotations

from .estimate import FIRST_PAGE, estimates, holding_of
from .model import Plan, Snapshot, Start, Wait
from .ordering import ordered
from .placement import Pool
from .quota import Tally, Tree
from .walk import walk


def decide(snapshot: Snapshot, now: float) -> Plan:
    """Everything that starts now, and for everything else its place, reason and estimate.

    The same snapshot and time give the same plan, in whatever order the snapshot lists its
    parts. Every waiting request is in the plan exactly once.
    """
    # 1. Put in order what waits.
    queue = ordered(snapshot.waiting)

    # 2. Count what is free, and what each group and person holds.
    tree = Tree(snapshot.groups)
    pool = Pool(snapshot.devices, snapshot.holdings, takes_work=snapshot.takes_work)
    tally = Tally(tree, snapshot.holdings)

    # 3. Walk along the queue: who starts, and what holds the others.
    started, held = walk(queue, pool=pool, tree=tree, tally=tally)

    # 4. Estimate the start of those on the first page, from the limits of all that run then.
    running = (
        *snapshot.holdings,
        *(holding_of(each.request, each.devices, now=now) for each in started),
    )
    expected = estimates(
        [each.request for each in held if each.request.devices][:FIRST_PAGE],
        devices=snapshot.devices,
        tree=tree,
        running=running,
        now=now,
    )

    # 5. Write the plan. A request without devices stands in nobody's way and takes no place.
    waits: list[Wait] = []
    ahead = 0
    for each in held:
        waits.append(
            Wait(
                request_id=each.request.id,
                place=ahead + 1,
                reason=each.reason,
                detail=each.detail,
                ahead=ahead,
                estimate=expected.get(each.request.id),
            )
        )
        ahead += each.request.devices > 0
    return Plan(
        starts=tuple(Start(request_id=s.request.id, devices=s.devices) for s in started),
        waits=tuple(waits),
    )
