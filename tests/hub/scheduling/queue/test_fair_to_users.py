"""A hundred users on twenty devices, in one group without guaranteed quota."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.model.snapshot import Allocation, DecayedUsage, PendingRequest, Snapshot
from carrel.hub.scheduling.placement.device_pool import Placement
from carrel.hub.scheduling.queue.running_set import allocation_of

from ..values import NOW, allocation, group, node, pending

MINUTE = 60.0
JOB = 30 * MINUTE
USERS = tuple(f"user{number:02}" for number in range(100))

# The first allocations end at ten different times: devices become free in pairs.
DEVICES = tuple(each for name in "abcde" for each in node(name, 4))
BEFORE = tuple(
    allocation(f"before{number}", device.id, owner="before", ends_in=number // 2 * JOB / 10)
    for number, device in enumerate(DEVICES)
)


def served(
    pending: tuple[PendingRequest, ...], past: Mapping[str, float] = MappingProxyType({})
) -> Iterator[Allocation]:
    """Yield the starts in order; all requests run to their time limits, and past use is always up
    to date."""
    state = Snapshot(devices=DEVICES, groups=(group(),), pending=pending, allocations=BEFORE)
    now, over = NOW, defaultdict(float, past)
    while state.pending:
        used = over.copy()
        for each in state.allocations:
            used[each.owner] += now - each.since
        state = replace(state, use=tuple(use_of(*each) for each in used.items()))
        by_id = {each.id: each for each in state.pending}
        started_with = [
            allocation_of(by_id.pop(start.request_id), Placement(devices=start.devices), now=now)
            for start in decide(state, now).starts
        ]
        yield from started_with
        held = (*state.allocations, *started_with)
        now = min(each.until for each in held)
        for each in held:
            over[each.owner] += each.until - each.since if each.until <= now else 0
        state = replace(
            state,
            pending=tuple(by_id.values()),
            allocations=tuple(each for each in held if each.until > now),
        )


def use_of(owner: str, device_seconds: float) -> DecayedUsage:
    return DecayedUsage(group="cs101", owner=owner, device_seconds=device_seconds)


def jobs(owner: str, count: int, *, age: float = 0.0) -> tuple[PendingRequest, ...]:
    return tuple(
        pending(f"{owner}-{number:02}", age=age, owner=owner, seconds=JOB)
        for number in range(count)
    )


def test_device_seconds_of_users_differ_by_no_more_than_one_job() -> None:
    """At any time, a user who requests more gets no more while others wait."""
    queue = tuple(
        each
        for number, owner in enumerate(USERS)
        for each in jobs(owner, 3 + number % 3, age=number)
    )
    left = Counter(each.owner for each in queue)
    granted = Counter(dict.fromkeys(USERS, 0))
    for started_with in served(queue):
        fewest = min(granted[owner] for owner in USERS if left[owner])
        left[started_with.owner] -= 1
        granted[started_with.owner] += 1
        assert granted[started_with.owner] <= fewest + 1
    assert granted == Counter(each.owner for each in queue)


def test_a_user_with_more_past_use_waits_until_others_have_caught_up() -> None:
    """With uneven past use, users come to differ by at most one job."""
    past = {owner: number % 3 * JOB for number, owner in enumerate(USERS)}
    granted = defaultdict(float, past)
    queue = tuple(each for owner in USERS for each in jobs(owner, 3))
    for turn, started_with in enumerate(served(queue, past)):
        granted[started_with.owner] += JOB
        if len(USERS) <= turn < 2 * len(USERS):
            assert max(granted.values()) - min(granted.values()) <= JOB


def test_a_burst_of_fifty_by_one_user_passes_no_other_user() -> None:
    """Fifty requests are submitted long before those of other users: the second one starts after
    the first of all others, and the third after their second."""
    burst = jobs("burst", 50, age=3600.0)
    others = tuple(each for owner in USERS for each in jobs(owner, 2))
    turns: dict[str, list[int]] = {owner: [] for owner in ("burst", *USERS)}
    for turn, started_with in enumerate(served((*burst, *others))):
        turns[started_with.owner].append(turn)
    first, second = (max(turns[owner][which] for owner in USERS) for which in (0, 1))
    assert turns["burst"][1] > first
    assert turns["burst"][2] > second
    assert len(turns["burst"]) == len(burst)
