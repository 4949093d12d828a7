"""What a plan comes to, once it is carried out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from carrel.hub.scheduling.model.plan import Plan, Stop
from carrel.hub.scheduling.model.snapshot import (
    Allocation,
    BudgetBalance,
    Group,
    PendingRequest,
    Snapshot,
)
from carrel.hub.scheduling.placement.device_pool import Placement
from carrel.hub.scheduling.queue.running_set import holding_of

from .values import NOW, waiting


def started(snapshot: Snapshot, plan: Plan) -> list[Allocation]:
    by_id = {request.id: request for request in snapshot.waiting}
    return [
        holding_of(
            by_id[start.request_id],
            Placement(devices=start.devices, share=by_id[start.request_id].share),
            now=NOW,
        )
        for start in plan.starts
    ]


def after(snapshot: Snapshot, plan: Plan) -> Snapshot:
    begun = started(snapshot, plan)
    names = {each.request_id for each in begun}
    return replace(
        snapshot,
        holdings=(*snapshot.holdings, *begun),
        waiting=tuple(each for each in snapshot.waiting if each.id not in names),
        budgets=tuple(charged(each, begun, snapshot.groups) for each in snapshot.budgets),
    )


def once_left(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """Those that were asked back are gone for good."""
    gone = {stop.request_id for stop in plan.stops}
    stay = tuple(each for each in snapshot.holdings if each.request_id not in gone)
    return replace(snapshot, holdings=stay)


def charged(
    left: BudgetBalance, begun: Iterable[Allocation], groups: Iterable[Group]
) -> BudgetBalance:
    by_name = {each.name: each for each in groups}
    more = sum(
        weight(each) * (each.until - NOW)
        for each in begun
        if is_below(each.group, left.group, by_name)
    )
    return replace(left, running=left.running + more)


def weight(holding: Allocation) -> float:
    return holding.share.compute if holding.share else len(holding.devices)


def chain_of(name: str | None, groups: dict[str, Group]) -> list[Group]:
    """A group and all above it; nothing where one of them is missing."""
    found = []
    while name is not None:
        if name not in groups:
            return []
        found.append(groups[name])
        name = groups[name].parent
    return found


def is_below(name: str, above: str, groups: dict[str, Group]) -> bool:
    at = groups.get(name)
    while at is not None and at.name != above:
        at = groups.get(at.parent or "")
    return at is not None


def counts_as_guaranteed(name: str, groups: dict[str, Group]) -> int:
    """To a group at least what those below it are guaranteed together."""
    below = (each.name for each in groups.values() if each.parent == name)
    together = sum(counts_as_guaranteed(each, groups) for each in below)
    return max(groups[name].guaranteed, together)


def back(holding: Allocation, stop: Stop) -> PendingRequest:
    """What was stopped, in the queue: it keeps its age."""
    request = waiting(
        holding.request_id,
        len(holding.devices),
        age=NOW - holding.since,
        owner=holding.owner,
        group=holding.group,
        seconds=holding.until - holding.since,
        priority=holding.priority,
    )
    return replace(
        request,
        kind=holding.kind,
        share=holding.share,
        preemptible=holding.preemptible,
        moved_for=stop.for_request if stop.moved else "",
        stopped_for="" if stop.moved else stop.for_request,
    )
