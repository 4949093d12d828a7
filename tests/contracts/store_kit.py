"""A small pool, and helpers that bring a request into a state, for tests of the store."""

from __future__ import annotations

from carrel.hub.interfaces.store import Store
from carrel.hub.records.leases import Handle, LeaseRecord
from carrel.hub.records.requests import Cause, CauseCode, NewRequest, RequestRecord
from carrel.hub.records.schedules import Schedule
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.scheduling.model.snapshot import Device, Group, Kind
from carrel.hub.transitions import lifecycle

LAB = Group(name="lab", max_devices=4, max_devices_per_user=4)
DEAD = Cause(code=CauseCode.LOST, message="Its process is gone.", details="exit status -9")
DONE = Cause(code=CauseCode.SUCCEEDED, message="All cells ran.")
CANCELLED = Cause(code=CauseCode.CANCELLED, message="Cancelled by ada.")
PROCESS = Handle(pid=4711, started_at=99.5)


def device(
    name: str,
    index: int = 0,
    *,
    node: str = "n1",
    simulated: bool = False,
    model: str = "H100",
) -> Device:
    return Device(
        id=name,
        node=node,
        index=index,
        model=model,
        memory_bytes=80 << 30,
        simulated=simulated,
    )


def furnish(store: Store) -> None:
    """Add one group, and one node with the devices D0 and D1."""
    store.put_group(LAB)
    store.sync_devices("n1", [device("D0", 0), device("D1", 1)])


def job(
    name: str, *, owner: str = "ada", group: str = "lab", devices: int = 1, key: str = ""
) -> NewRequest:
    return NewRequest(
        id=f"j-{name}",
        kind=Kind.JOB,
        owner=owner,
        group=group,
        devices=devices,
        seconds=600,
        idempotency_key=key or name,
    )


def session(name: str, *, owner: str = "ada", server: str = "", key: str = "") -> NewRequest:
    return NewRequest(
        id=f"s-{name}",
        kind=Kind.SESSION,
        owner=owner,
        group="lab",
        devices=1,
        seconds=3600,
        idempotency_key=key or name,
        server_name=server,
    )


def schedule(name: str, owner: str = "ada", next_at: float | None = 100.0) -> Schedule:
    return Schedule(
        id=f"c-{name}",
        owner=owner,
        group="lab",
        what="train.ipynb",
        devices=1,
        cron="0 6 * * *",
        zone="UTC",
        created_at=5.0,
        next_at=next_at,
        idempotency_key=name,
    )


def granted(store: Store, new: NewRequest, *devices: str, at: float = 100.0) -> LeaseRecord:
    """Submit and grant at once."""
    store.submit(new, at)
    start = Start(request_id=new.id, devices=devices)
    (lease,) = store.grant([start], now=at, lease_seconds=30)
    return lease


def running(store: Store, new: NewRequest, *devices: str, at: float = 100.0) -> LeaseRecord:
    """Submit, grant, launch and start at once."""
    lease = granted(store, new, *devices, at=at)
    store.launch(lease.id, now=at)
    started = store.apply_to_lease(lease.id, lifecycle.start, PROCESS, now=at)
    assert started.lease is not None
    return started.lease


def states(store: Store, request: RequestRecord | str) -> list[object]:
    """Return the states in the history of a request, in order."""
    name = request if isinstance(request, str) else request.id
    return [event.data["state"] for event in store.events(name) if event.kind == "state"]


def charges(store: Store) -> list[tuple[str, float, float, float]]:
    """Return the ledger as tuples: lease, start, end, device-seconds."""
    return [
        (entry.lease_id, entry.starts_at, entry.ends_at, entry.device_seconds)
        for entry in store.ledger()
    ]
