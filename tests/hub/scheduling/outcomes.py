"""The state of the pool after a plan."""

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
from carrel.hub.scheduling.queue.running_set import allocation_of

from .values import NOW, pending


def started(snapshot: Snapshot, plan: Plan) -> list[Allocation]:
    by_id = {request.id: request for request in snapshot.pending}
    return [
        allocation_of(
            by_id[start.request_id],
            Placement(devices=start.devices, share=by_id[start.request_id].share),
            now=NOW,
        )
        for start in plan.starts
    ]


def after(snapshot: Snapshot, plan: Plan) -> Snapshot:
    started_with = started(snapshot, plan)
    names = {each.request_id for each in started_with}
    return replace(
        snapshot,
        allocations=(*snapshot.allocations, *started_with),
        pending=tuple(each for each in snapshot.pending if each.id not in names),
        budgets=tuple(charged(each, started_with, snapshot.groups) for each in snapshot.budgets),
    )


def once_left(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """Return the snapshot without the victims."""
    gone = {stop.request_id for stop in plan.stops}
    stay = tuple(each for each in snapshot.allocations if each.request_id not in gone)
    return replace(snapshot, allocations=stay)


def charged(
    left: BudgetBalance, started_with: Iterable[Allocation], groups: Iterable[Group]
) -> BudgetBalance:
    by_name = {each.name: each for each in groups}
    more = sum(
        weight(each) * (each.until - NOW)
        for each in started_with
        if is_below(each.group, left.group, by_name)
    )
    return replace(left, running=left.running + more)


def weight(allocation: Allocation) -> float:
    return allocation.share.compute if allocation.share else len(allocation.devices)


def chain_of(name: str | None, groups: dict[str, Group]) -> list[Group]:
    """Return a group and its ancestors; nothing if one of them is missing."""
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
    """Return the guaranteed quota of a group: at least the sum over its subgroups."""
    below = (each.name for each in groups.values() if each.parent == name)
    together = sum(counts_as_guaranteed(each, groups) for each in below)
    return max(groups[name].guaranteed, together)


def back(allocation: Allocation, stop: Stop) -> PendingRequest:
    """Return the queued requests of stopped allocations, with their age."""
    request = pending(
        allocation.request_id,
        len(allocation.devices),
        age=NOW - allocation.since,
        owner=allocation.owner,
        group=allocation.group,
        seconds=allocation.until - allocation.since,
        priority=allocation.priority,
    )
    return replace(
        request,
        kind=allocation.kind,
        share=allocation.share,
        preemptible=allocation.preemptible,
        moved_for=stop.for_request if stop.relocated else "",
        stopped_for="" if stop.relocated else stop.for_request,
    )
