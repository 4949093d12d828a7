"""When those at the head of the queue are expected to start, from time limits alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import count

from .model import Device, Estimate, Holding, Waiting
from .placement import Pool
from .quota import Tally, Tree
from .walk import walk

FIRST_PAGE = 20
"""How many waiting requests are given an estimate: those that people see first."""


def estimates(
    page: Sequence[Waiting],
    *,
    devices: Iterable[Device],
    tree: Tree,
    running: Sequence[Holding],
    now: float,
) -> Mapping[str, Estimate]:
    """Expected start by request id; one that never comes to start has none.

    1. Everything that runs ends when its time limit does; what is overdue ends now.
    2. Whenever something ends, the queue is walked by the rules that hold in the cycle.
    3. What starts then runs for its whole time limit, and so on.

    ``page`` is the head of the ordered queue and is all that is looked at: requests behind it
    could only take devices that those on the page are kept from by a limit of their own.
    """
    pool = Pool(devices, running)
    tally = Tally(tree, running)
    waiting = tuple(page)
    found: dict[str, Estimate] = {}
    tie = count()
    ends = [(max(holding.until, now), next(tie), holding) for holding in running]
    heapify(ends)
    while waiting and ends:
        at = ends[0][0]
        while ends and ends[0][0] == at:
            holding = heappop(ends)[2]
            pool.give_back(holding.devices)
            tally.add(holding.group, holding.owner, -len(holding.devices))
        started, held = walk(waiting, pool=pool, tree=tree, tally=tally)
        for each in started:
            found[each.request.id] = Estimate(at=at, latest=at)
            holding = holding_of(each.request, each.devices, now=at)
            heappush(ends, (holding.until, next(tie), holding))
        waiting = tuple(each.request for each in held)
    return found


def holding_of(request: Waiting, devices: tuple[str, ...], *, now: float) -> Holding:
    """What a request holds once it starts, for as long as its time limit."""
    return Holding(
        request_id=request.id,
        owner=request.owner,
        group=request.group,
        devices=devices,
        since=now,
        until=now + request.seconds,
    )
