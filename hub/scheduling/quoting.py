"""What if: a request that nobody has sent yet, and a lease that nobody held.

Both are asked of a copy of the snapshot, and nothing is reserved by the question.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass, replace

from .cycle import decide
from .estimate import FIRST_PAGE, estimates, holding_of
from .model import Holding, Plan, Reason, Snapshot, Wait, Waiting
from .ordering import order_key, ordered
from .placement import Pool
from .quota import Tally, Tree
from .walk import Held, Line, walk


def quotes(snapshot: Snapshot, requests: Sequence[Waiting], now: float) -> tuple[Wait, ...]:
    """What ``decide`` would say of each of these, if it alone came too.

    A request that would start at once has the place 0. The queue is walked once for all of
    those that would be the last in it, as whoever asks now nearly always is.
    """
    queue = ordered(snapshot.waiting)
    keys = [order_key(each) for each in queue]
    front = _walked(snapshot, queue, now)
    return tuple(
        _at_the_end(front, request, now)
        if bisect(keys, order_key(request)) == len(queue)
        else _decided(snapshot, request, now)
        for request in requests
    )


def served_without(snapshot: Snapshot, request_id: str, now: float) -> Waiting | None:
    """Who waits and would start now, or sooner, if this request held nothing; the first of them.

    Its owner's own requests do not count: whom to serve first is the owner's choice.
    """
    holding = next((each for each in snapshot.holdings if each.request_id == request_id), None)
    if holding is None:
        return None
    waiting = {each.id: each for each in snapshot.waiting if each.devices > 0}
    others = [each for each in waiting.values() if each.owner != holding.owner]
    if not others:
        return None
    left = tuple(each for each in snapshot.holdings if each is not holding)
    before = _expected(decide(snapshot, now), now)
    after = _expected(decide(replace(snapshot, holdings=left), now), now)
    sooner = [
        each
        for each in others
        if each.id in after and (each.id not in before or after[each.id] < before[each.id])
    ]
    return min(sooner, key=order_key, default=None)


def _expected(plan: Plan, now: float) -> dict[str, float]:
    """When each of the first page starts, as far as that is known."""
    return {start.request_id: now for start in plan.starts} | {
        wait.request_id: wait.estimate.at for wait in plan.waits if wait.estimate
    }


def _decided(snapshot: Snapshot, request: Waiting, now: float) -> Wait:
    plan = decide(replace(snapshot, waiting=(*snapshot.waiting, request)), now)
    found = next((wait for wait in plan.waits if wait.request_id == request.id), None)
    return found or _starts(request)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Front:
    """All that waits, walked: what a request behind it finds."""

    snapshot: Snapshot
    tree: Tree
    pool: Pool
    tally: Tally
    line: Line
    running: tuple[Holding, ...]
    page: tuple[Waiting, ...]
    ahead: int


def _walked(snapshot: Snapshot, queue: Sequence[Waiting], now: float) -> _Front:
    tree, line = Tree(snapshot.groups), Line()
    pool = Pool(snapshot.devices, snapshot.holdings, takes_work=snapshot.takes_work)
    tally = Tally(tree, snapshot.holdings)
    started, held = walk(queue, pool=pool, tree=tree, tally=tally, line=line)
    in_line = [each.request for each in held if each.request.devices]
    begun = (holding_of(each.request, each.devices, now=now) for each in started)
    return _Front(
        snapshot=snapshot,
        tree=tree,
        pool=pool,
        tally=tally,
        line=line,
        running=(*snapshot.holdings, *begun),
        page=tuple(in_line[:FIRST_PAGE]),
        ahead=len(in_line),
    )


def _at_the_end(front: _Front, request: Waiting, now: float) -> Wait:
    _, held = walk(
        [request],
        pool=front.pool.copy(),
        tree=front.tree,
        tally=front.tally.copy(),
        line=front.line.copy(),
    )
    return _waits(front, held[0], now) if held else _starts(request)


def _waits(front: _Front, held: Held, now: float) -> Wait:
    request = held.request
    expected = None
    if request.devices and front.ahead < FIRST_PAGE:
        expected = estimates(
            [*front.page, request],
            devices=front.snapshot.devices,
            tree=front.tree,
            running=front.running,
            now=now,
        ).get(request.id)
    return Wait(
        request_id=request.id,
        place=front.ahead + 1,
        reason=held.reason,
        detail=held.detail,
        ahead=front.ahead,
        estimate=expected,
    )


def _starts(request: Waiting) -> Wait:
    return Wait(request_id=request.id, place=0, reason=Reason.STARTING)
