"""What both stores check and say about groups, devices and the queue, as values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..errors import InvalidInput, NotFound
from ..ports.records import LeaseRecord, RequestRecord
from ..scheduling import quota
from ..scheduling.model import Device, Group, Health, Holding, Waiting

GONE = "It was there before and is not found any more."


def check_group(group: Group, known: Mapping[str, Group]) -> None:
    """Raises InvalidInput where the group does not fit into the tree."""
    if min(group.max_devices, group.max_devices_per_user, group.max_seconds) < 0:
        raise InvalidInput(
            f"A limit of the group {group.name} is negative.", accepted="Limits are 0 or more."
        )
    above, seen = group.parent, {group.name}
    while above is not None:
        if above in seen:
            raise InvalidInput(
                f"The group {group.name} cannot stand below {group.parent}: that makes a circle.",
                accepted="A parent must not be below its own child.",
            )
        if above not in known:
            raise InvalidInput(
                f"There is no group {above} to be the parent of {group.name}.",
                accepted=f"Groups: {names(known)}.",
            )
        seen.add(above)
        above = known[above].parent


def no_group(name: str, known: Iterable[str]) -> NotFound:
    return NotFound(f"There is no group {name}.", accepted=f"Groups: {names(known)}.")


def no_device(name: str) -> NotFound:
    return NotFound(f"There is no device {name}.")


def no_request(name: str) -> NotFound:
    return NotFound(f"There is no request {name}.")


def no_lease(name: str) -> NotFound:
    return NotFound(f"There is no lease {name}.")


def names(known: Iterable[str]) -> str:
    return ", ".join(sorted(known)) or "none yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """What has to change for a node's devices to be as they were seen."""

    put: tuple[Device, ...]
    remove: tuple[str, ...]


def inventory(
    node: str,
    seen: Sequence[Device],
    known: Mapping[str, Device],
    taken: Collection[str],
) -> Inventory:
    """Compare what was seen on a node with every device known so far.

    A simulated device goes for good once its node has none of them any more (the pool is real
    now) and no lease holds it. Any other that is missing is kept as gone: its lease, its
    history and its place among the tiles go on.
    """
    now = {device.id: replace(device, node=node) for device in seen}
    put = [device for device in now.values() if known.get(device.id) != device]
    still_simulated = any(device.simulated for device in now.values())
    remove = []
    for old in known.values():
        if old.node != node or old.id in now:
            continue
        if old.simulated and not still_simulated and old.id not in taken:
            remove.append(old.id)
        elif old.health is not Health.GONE:
            put.append(replace(old, health=Health.GONE, why=GONE))
    return Inventory(put=tuple(put), remove=tuple(remove))


def waiting(request: RequestRecord) -> Waiting:
    """A queued request as the scheduler sees it."""
    return Waiting(
        id=request.id,
        kind=request.kind,
        owner=request.owner,
        group=request.group,
        devices=request.devices,
        seconds=request.seconds,
        submitted_at=request.submitted_at,
        model=request.model,
        priority=request.priority,
    )


def holding(request: RequestRecord, lease: LeaseRecord) -> Holding:
    """A lease that is not released as the scheduler sees it."""
    return Holding(
        request_id=request.id,
        owner=request.owner,
        group=request.group,
        devices=lease.devices,
        since=lease.granted_at,
        until=lease.granted_at + request.seconds,
    )


class Room:
    """Quota as it stands inside the transaction that grants (design: section 5, rule 2).

    A limit may have been lowered since the plan was made; a grant that would go above it is
    left out, and the next cycle plans anew.
    """

    def __init__(self, groups: Iterable[Group], holdings: Iterable[Holding]) -> None:
        self._tree = quota.Tree(groups)
        self._tally = quota.Tally(self._tree, holdings)

    def allows(self, request: RequestRecord) -> bool:
        return quota.room(waiting(request), self._tree, self._tally) is None

    def take(self, request: RequestRecord) -> None:
        self._tally.add(request.group, request.owner, request.devices)
