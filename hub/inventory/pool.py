"""Show the devices of the pool with their state, as the caller may see them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ..groups.calendar import GroupCalendar, ReservedTime
from ..groups.membership import Membership, viewer_of
from ..interfaces.store import Store
from ..records.identity import Identity, Viewer
from ..runtime.context import Context
from ..runtime.device_evidence import DeviceEvidence
from ..scheduling.model.snapshot import Allocation, Device, Health
from ..schemas import DeviceOut, PoolOut
from ..schemas.calendar import ReservationOut

RESERVED_SHOWN = 10
"""How many reservations are listed with the devices."""


@dataclass(frozen=True, slots=True)
class PoolQueries:
    """The device pool as each viewer may see it."""

    store: Store
    membership: Membership
    calendar: GroupCalendar
    evidence: DeviceEvidence

    @classmethod
    def of(cls, context: Context) -> PoolQueries:
        calendar = GroupCalendar(context.store, context.clock)
        return cls(context.store, Membership.of(context), calendar, context.device_evidence)

    def reservations(
        self, who: Identity | None, *, groups_of: Collection[str] | None = None
    ) -> list[ReservationOut]:
        """Return the reservations that are not over, the next one first.

        ``groups_of``: the viewer's groups where they are known already.
        """
        return self.calendar.reservations_for(who, self.membership, groups_of=groups_of)

    def reserved_times(self, who: Identity, since: float, until: float) -> list[ReservedTime]:
        """Return the occurrences of reservations between two moments, as this viewer sees them."""
        return self.calendar.occurrences_for(who, self.membership, since, until)

    def pool(self, who: Identity | None, *, groups_of: Collection[str] | None = None) -> PoolOut:
        """Return the devices and the next reservations; ``groups_of`` as in ``reservations``."""
        reserved = self.reservations(who, groups_of=groups_of)
        store = self.store
        viewer = viewer_of(store, who)
        with store.together():
            seen = store.devices(), store.allocations(), store.waiting_for_devices()
        found = pool_of(*seen, viewer)
        devices = found.devices
        if viewer.sees_all:
            devices = [
                each.model_copy(update={"evidence": self.evidence.of(each.id)}) for each in devices
            ]
        return found.model_copy(
            update={"reservations": reserved[:RESERVED_SHOWN], "devices": devices}
        )


def device_out(device: Device, holding: Allocation | None, viewer: Viewer) -> DeviceOut:
    """Return one device as a tile of the pool."""
    if holding is not None:
        state = "yours" if holding.owner == viewer.name else "taken"
    elif device.quarantine is not None and device.health is not Health.GONE:
        state = "sick"
    elif device.health is not Health.OK:
        state = device.health.value
    elif device.unreachable is not None:
        state = Health.GONE.value
    elif device.validation is not None:
        state = Health.BUSY.value
    else:
        state = "draining" if device.draining else "free"
    named = holding is not None and viewer.may_see(holding.owner, holding.group)
    return DeviceOut.model_validate(
        {
            "id": device.id,
            "node": device.node,
            "index": device.index,
            "model": device.model,
            "memory_bytes": device.memory_bytes,
            "simulated": device.simulated,
            "driver": device.driver,
            "files": [{"path": file.path, "group": file.group} for file in device.files],
            "state": state,
            "why": why_not_lent(device),
            "draining": device.draining,
            "drain_until": device.drain.until if device.drain else None,
            "quarantined": device.quarantine is not None,
            "request_id": holding.request_id if holding and named else None,
            "owner": holding.owner if holding and named else None,
        }
    )


def why_not_lent(device: Device) -> str:
    """Return why the device accepts no new requests; empty if it does."""
    if device.quarantine is not None:
        return f"In quarantine: {device.quarantine.why}"
    if device.health is not Health.OK:
        return device.why
    if device.unreachable is not None:
        return device.unreachable.why
    if device.validation is not None:
        return device.validation.why
    return f"Draining: {device.drain.why}" if device.drain and device.drain.why else ""


def pool_of(
    devices: Sequence[Device], allocations: Iterable[Allocation], waiting: int, viewer: Viewer
) -> PoolOut:
    """Return the pool as the viewer may see it."""
    held = {name: holding for holding in allocations for name in holding.devices}
    tiles = [device_out(device, held.get(device.id), viewer) for device in devices]
    return PoolOut(
        devices=tiles,
        free=sum(tile.state == "free" for tile in tiles),
        total=len(tiles),
        out_of_service=sum(not device.schedulable for device in devices),
        waiting=waiting,
        simulated=any(device.simulated for device in devices),
    )
