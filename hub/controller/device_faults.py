"""Quarantine failed devices, and end the work on devices that failed or were drained.

A device that reports errors, falls off the bus, or vanishes under a lease is quarantined with
its evidence. Its jobs are requeued in their old position, its sessions end; the attempt is not
charged (docs/decisions/0008). A quarantine by an administrator and a drain without a date leave
running work alone.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from ..messages.units import device_name
from ..records.audit import SERVICE, AuditAction, AuditEntry
from ..records.leases import LeaseRecord
from ..records.requests import Cause, CauseCode, RequestFilter, RequestRecord
from ..runtime.context import Context
from ..scheduling.model.snapshot import Device, Health, Kind, Mark, MarkKind
from ..scheduling.model.states import HOLDS_DEVICES, State
from ..transitions import lifecycle

log = logging.getLogger(__name__)

LOOK_SECONDS = 3.0
"""How long the end of an attempt may wait for a look at its devices."""
_MAY_BE_ITS_DEVICE = frozenset(
    {CauseCode.CELL_ERROR, CauseCode.KERNEL_DIED, CauseCode.COMMAND_FAILED, CauseCode.LOST}
)
"""Causes that a failed device produces before the failure itself is seen."""
_ALL = 100_000


class DeviceFaults:
    """Called by the loop; what it remembers may be lost."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._looked = 0.0
        """When the last look at the devices began that has come back."""
        self._acted = 0.0
        """The look that the last ``reconcile`` knew of."""
        self._ended: dict[str, float] = {}
        """When the end of an attempt was first seen that waits for a look."""

    # -- finding faults -------------------------------------------------------------------

    def found(self, seen: Sequence[Device], *, began: float) -> None:
        """Put into quarantine what the inventory shows as broken."""
        reported = {device.id for device in seen}
        held = {name for holding in self._store.allocations() for name in holding.devices}
        for device in self._store.devices():
            if device.quarantine is None and _failed(device, reported, held):
                self._set_aside(device)
        self.looked(began)

    def looked(self, began: float) -> None:
        """The devices were asked, whether or not they answered."""
        self._looked = max(self._looked, began)

    def _set_aside(self, device: Device) -> None:
        now = self._context.clock()
        log.warning("%s is put into quarantine: %s", device.id, device.why)
        self._store.put_mark(
            Mark(target=device.id, kind=MarkKind.QUARANTINE, since=now, why=device.why),
            change=AuditEntry(
                at=now,
                who=SERVICE,
                action=AuditAction.QUARANTINE,
                target=device.id,
                why=device.why,
                after={"device": device_name(device), "node": device.node},
            ),
        )

    def undecided(self, lease: LeaseRecord, request: RequestRecord, now: float) -> bool:
        """Whether an attempt that has ended waits for a look at its devices.

        A kernel notices a lost device at once, the inventory some seconds later: without this
        a job would fail for what its device did.
        """
        if request.state is State.STOPPING and not _may_be_its_device(request):
            return False
        devices = self._devices()
        if not any(name in devices and not devices[name].simulated for name in lease.devices):
            return False
        asked = self._ended.setdefault(lease.id, now)
        if self._acted < asked and now - asked < LOOK_SECONDS:
            return True
        del self._ended[lease.id]
        return False

    # -- acting on marks ------------------------------------------------------------------

    def reconcile(self, now: float) -> bool:
        """Stop what is on a device that failed, and what a drain leaves no more time."""
        self._acted = self._looked
        marks = self._store.marks()
        faults = {mark.target: mark for mark in marks if mark.fault}
        over = {m.target: m for m in marks if m.until is not None and m.until <= now}
        if not faults and not over:
            return False
        changed = False
        for request in self._store.requests(RequestFilter(states=HOLDS_DEVICES, limit=_ALL)):
            lease = request.lease
            if lease is None:
                continue
            fault = _first(faults, lease.devices)
            drain = _first(over, (*lease.devices, lease.node))
            if fault is not None:
                changed |= self._give_up(request, fault, now)
            elif drain is not None:
                changed |= self._empty(lease, request, drain, now)
        return changed

    def _give_up(self, request: RequestRecord, fault: Mark, now: float) -> bool:
        if request.state is State.STOPPING and not _may_be_its_device(request):
            return False
        device = self._devices().get(fault.target)
        name = device_name(device) if device else fault.target
        session = request.kind is Kind.SESSION and request.state is not State.GRANTED
        what_next = (
            "This session is not charged; what was saved is kept."
            if session
            else "It is tried again in its old place, and this attempt is not charged."
        )
        cause = Cause(
            code=CauseCode.DEVICE_FAULT,
            message=f"Its device {name} failed. {what_next}",
            details=fault.why,
        )
        if session:
            after = self._store.apply(request.id, lifecycle.stop, State.FAILED, cause, now=now)
        else:
            after = self._store.apply(request.id, lifecycle.halt, cause, now=now)
        return after != request

    def _empty(self, lease: LeaseRecord, request: RequestRecord, drain: Mark, now: float) -> bool:
        if request.state is State.STOPPING:
            return False
        if request.state is State.GRANTED:
            self._store.apply_to_lease(
                lease.id, lifecycle.give_back, now=now, charge_until=lease.granted_at
            )
            return True
        what = "node" if drain.target == lease.node else "device"
        why = f" ({drain.why})" if drain.why else ""
        cause = Cause(
            code=CauseCode.DRAINED,
            message=f"Stopped, as announced: its {what} is taken out of service{why}.",
        )
        self._store.apply(request.id, lifecycle.stop, State.CANCELLED, cause, now=now)
        return True

    def _devices(self) -> Mapping[str, Device]:
        return {device.id: device for device in self._store.devices()}


def _failed(device: Device, reported: set[str], held: set[str]) -> bool:
    """Whether it is broken, and not only absent: a driver that is restarted comes back."""
    if device.health is Health.SICK:
        return True
    if device.health is not Health.GONE:
        return False
    return device.id in reported or (device.id in held and not device.simulated)


def _may_be_its_device(request: RequestRecord) -> bool:
    cause = request.cause
    return request.target is State.FAILED and cause is not None and cause.code in _MAY_BE_ITS_DEVICE


def _first(marks: Mapping[str, Mark], names: Sequence[str]) -> Mark | None:
    return next((marks[name] for name in names if name in marks), None)
