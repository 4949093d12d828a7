"""A full pool with a long queue, made from a seed: what ``decide``, ``step`` and ``explain`` meet.

Three device models on nodes of eight; an institution with thirty groups, half of which hold their
maximum; a fifth of the requests are gangs; one reservation runs, another is ahead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from random import Random

from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.model.snapshot import (
    Allocation,
    DecayedUsage,
    Device,
    GangRole,
    Group,
    Kind,
    PendingRequest,
    PriorityClass,
    ReservedSpan,
    Snapshot,
)
from carrel.hub.scheduling.placement.device_pool import Placement
from carrel.hub.scheduling.queue.running_set import allocation_of

NOW = 1_800_000_000.0
HOUR = 3600.0
MODELS = ("A100", "H200", "L40S")
IN_NODE = 8
NODES_OF_A_SWITCH = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large the scenario is.

    Attributes:
        users: at least as many as there are groups, so that each has a member.
    """

    devices: int = 1000
    pending: int = 10_000
    users: int = 500
    groups: int = 30

    @property
    def full_groups(self) -> int:
        """How many hold their maximum: half, or fewer in a pool that has not enough for them."""
        return min(self.groups, self.devices) // 2


class Scenario:
    """Everything that the seed decides."""

    def __init__(self, seed: int, size: Size) -> None:
        self._random = Random(seed)  # noqa: S311 - repeatable, and nothing is secret
        self._size = size
        self._ids = count()
        self.devices = _devices(size.devices)
        self.groups = _groups(size)

    def snapshot(self, now: float = NOW) -> Snapshot:
        """Queued and running requests, on a pool that is full."""
        size = self._size
        pool = self._full(Snapshot(devices=self.devices, groups=self.groups), now)
        pending = (
            self.request(now - self._random.uniform(0, 48 * HOUR)) for _ in range(size.pending)
        )
        return replace(
            pool,
            pending=tuple(pending),
            reserved=(
                ReservedSpan(
                    id="lab", group="g01", devices=8, starts_at=now - 60, ends_at=now + HOUR
                ),
                ReservedSpan(
                    id="exam",
                    group="g02",
                    devices=16,
                    starts_at=now + 3 * HOUR,
                    ends_at=now + 5 * HOUR,
                ),
            ),
        )

    def request(self, submitted_at: float) -> PendingRequest:
        random = self._random
        user = random.randrange(self._size.users)
        gang = random.random() < 0.2
        members = random.choice((2, 2, 4, 8)) if gang else 0
        devices = 4 * members if gang else random.choice((1, 1, 1, 1, 2, 4))
        kind = Kind.JOB if gang or random.random() < 0.7 else Kind.SESSION
        return PendingRequest(
            id=f"r{next(self._ids):06}",
            kind=kind,
            owner=f"user{user:03}",
            group=_name(user % self._size.groups),
            devices=devices,
            seconds=float(random.choice((1, 2, 4, 8, 24)) * HOUR),
            submitted_at=submitted_at,
            model=random.choice((None, *MODELS)),
            priority=_CLASS[kind] if random.random() < 0.8 else PriorityClass.OPPORTUNISTIC,
            expected=random.choice((None, random.uniform(60, 20 * HOUR))),
            preemptible=kind is Kind.JOB,
            gang=(GangRole(name="worker", devices=4, wanted=members, minimum=members),)
            if gang
            else (),
        )

    def _full(self, empty: Snapshot, now: float) -> Snapshot:
        """What a decision starts of a crowd: first of those who are to hold their maximum."""
        size = self._size
        crowd = [
            self.request(now - self._random.uniform(0, 48 * HOUR))
            for _ in range(max(3000, 3 * size.devices))
        ]
        limited = {_name(number) for number in range(size.groups) if _is_full(number, size)}
        pool = replace(empty, use=tuple(self._use()))
        pool = self._started(pool, [each for each in crowd if each.group in limited], now)
        pool = self._started(pool, self._what_lacks(pool, now), now)
        return self._started(pool, [each for each in crowd if each.group not in limited], now)

    def _what_lacks(self, pool: Snapshot, now: float) -> list[PendingRequest]:
        """Jobs of one device, as many as those who are to hold their maximum may still have: what
        they asked for leaves a rest, or is too large for it."""
        size = self._size
        held = Counter[str]()
        for allocation in pool.allocations:
            held[allocation.group] += len(allocation.devices)
        limits = {group.name: group.max_devices for group in self.groups}
        return [
            self._single(number, now)
            for number in range(size.groups)
            if _is_full(number, size)
            for _ in range(limits[_name(number)] - held[_name(number)])
        ]

    def _single(self, group: int, now: float) -> PendingRequest:
        user = self._random.randrange(group, self._size.users, self._size.groups)
        return replace(
            self.request(now - self._random.uniform(0, 48 * HOUR)),
            kind=Kind.JOB,
            owner=f"user{user:03}",
            group=_name(group),
            devices=1,
            gang=(),
            model=None,
            priority=PriorityClass.NORMAL,
            preemptible=True,
        )

    def _started(self, pool: Snapshot, crowd: Sequence[PendingRequest], now: float) -> Snapshot:
        """The pool with what of the crowd starts in it."""
        wanted = {request.id: request for request in crowd}
        started = tuple(
            self._running(wanted[start.request_id], start.devices, now)
            for start in decide(replace(pool, pending=tuple(crowd)), now).starts
        )
        return replace(pool, allocations=pool.allocations + started)

    def _running(self, request: PendingRequest, devices: tuple[str, ...], now: float) -> Allocation:
        """It began somewhere within its time limit."""
        since = now - self._random.uniform(0, request.seconds)
        return allocation_of(request, Placement(devices=devices), now=since)

    def _use(self) -> list[DecayedUsage]:
        return [
            DecayedUsage(
                group=_name(user % self._size.groups),
                owner=f"user{user:03}",
                device_seconds=self._random.expovariate(1 / (100 * HOUR)),
            )
            for user in range(self._size.users)
        ]


_CLASS = {Kind.SESSION: PriorityClass.INTERACTIVE, Kind.JOB: PriorityClass.NORMAL}


def _devices(number: int) -> tuple[Device, ...]:
    return tuple(
        Device(
            id=f"GPU-{index:05}",
            node=f"node{index // IN_NODE:04}",
            index=index % IN_NODE,
            model=MODELS[index // IN_NODE % len(MODELS)],
            memory_bytes=80 << 30,
            switch=f"switch{index // IN_NODE // NODES_OF_A_SWITCH}",
        )
        for index in range(number)
    )


def _name(group: int) -> str:
    return f"g{group:02}"


def _is_full(group: int, size: Size) -> bool:
    """Whether it is to hold its maximum: every second one, as long as devices are left."""
    return group % 2 == 1 and group // 2 < size.full_groups


def _groups(size: Size) -> tuple[Group, ...]:
    """Half of them may hold no more than an equal part; all are guaranteed two thirds of that."""
    part = max(1, size.devices // size.groups)
    return (
        Group(name="university", max_devices=size.devices, max_devices_per_user=size.devices),
        *(
            Group(
                name=_name(number),
                parent="university",
                max_devices=part if _is_full(number, size) else size.devices,
                max_devices_per_user=max(4, part),
                max_seconds=24 * 3600,
                guaranteed=part * 2 // 3,
                weight=1.0 + number % 3,
            )
            for number in range(size.groups)
        ),
    )
