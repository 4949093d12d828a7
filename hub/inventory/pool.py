"""Show the devices of the pool with their state, as the caller may see them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..records.identity import Viewer
from ..scheduling.model.snapshot import Allocation, Device, Health
from ..schemas import DeviceOut, PoolOut

RESERVED_SHOWN = 10
"""How many reservations stand beside the devices."""


def device_out(device: Device, holding: Allocation | None, viewer: Viewer) -> DeviceOut:
    """A tile of the pool."""
    if holding is not None:
        state = "yours" if holding.owner == viewer.name else "taken"
    elif device.quarantine is not None and device.health is not Health.GONE:
        state = "sick"
    elif device.health is not Health.OK:
        state = device.health.value
    elif device.silent is not None:
        state = Health.GONE.value
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
    """The sentence on its tile; empty where it is lent as ever."""
    if device.quarantine is not None:
        return f"In quarantine: {device.quarantine.why}"
    if device.health is not Health.OK:
        return device.why
    if device.silent is not None:
        return device.silent.why
    return f"Draining: {device.drain.why}" if device.drain and device.drain.why else ""


def pool_of(
    devices: Sequence[Device], holdings: Iterable[Allocation], waiting: int, viewer: Viewer
) -> PoolOut:
    """The pool as the viewer may see it."""
    held = {name: holding for holding in holdings for name in holding.devices}
    tiles = [device_out(device, held.get(device.id), viewer) for device in devices]
    return PoolOut(
        devices=tiles,
        free=sum(tile.state == "free" for tile in tiles),
        total=len(tiles),
        waiting=waiting,
        simulated=any(device.simulated for device in devices),
    )
