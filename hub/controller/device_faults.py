"""Quarantine failed devices, and end the work on devices that failed or were drained.

A device that reports errors, falls off the bus, or disappears while leased is quarantined, and
the reason is stored. Its jobs are requeued, first in their priority class, and its sessions end;
the attempt is not charged (docs/decisions/0008). A quarantine by an administrator and a drain
without a date do not affect running work.
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
from .retries import may_retry_device_fault

log = logging.getLogger(__name__)

INVENTORY_WAIT_SECONDS = 3.0
"""How long the end of an attempt may wait for a new inventory of its devices."""
_POSSIBLE_DEVICE_FAULT = frozenset(
    {
        CauseCode.CELL_ERROR,
        CauseCode.KERNEL_DIED,
        CauseCode.KERNEL_NOT_STARTED,
        CauseCode.COMMAND_FAILED,
        CauseCode.LOST,
    }
)
"""Causes that a failed device produces before the inventory reports the failure."""
_ALL = 100_000


class DeviceFaults:
    """Called by the loop; its state may be lost."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._inventory_at = 0.0
        """Start of the latest completed inventory."""
        self._reconciled_inventory_at = 0.0
        """``_inventory_at`` at the last ``reconcile``."""
        self._ended: dict[str, float] = {}
        """By lease: when the end of an attempt that waits for an inventory was first seen."""

    # -- detection ------------------------------------------------------------------------

    def quarantine_failed(self, reported: Sequence[Device], *, began: float) -> None:
        """Quarantine the devices that failed according to an inventory.

        Args:
            reported: the devices in the inventory.
            began: when the inventory began.
        """
        present = {device.id for device in reported}
        held = {name for holding in self._store.allocations() for name in holding.devices}
        for device in self._store.devices():
            if device.quarantine is None and _failed(device, present, held):
                self._quarantine(device)
        self.record_inventory(began)

    def record_inventory(self, began: float) -> None:
        """Record an inventory that began then, whether or not the driver answered."""
        self._inventory_at = max(self._inventory_at, began)

    def _quarantine(self, device: Device) -> None:
        now = self._context.clock()
        log.warning("%s is quarantined: %s", device.id, device.why)
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

    def awaits_inventory(self, lease: LeaseRecord, request: RequestRecord, now: float) -> bool:
        """Whether an attempt that has ended waits for a new inventory of its devices.

        A kernel notices a lost device at once, the inventory some seconds later: without this
        wait the job would fail for a fault of its device.
        """
        if request.state is State.STOPPING and not _may_be_device_fault(request):
            return False
        devices = self._devices()
        if not any(name in devices and not devices[name].simulated for name in lease.devices):
            return False
        ended = self._ended.setdefault(lease.id, now)
        if self._reconciled_inventory_at < ended and now - ended < INVENTORY_WAIT_SECONDS:
            return True
        del self._ended[lease.id]
        return False

    # -- enforcement ----------------------------------------------------------------------

    def reconcile(self, now: float) -> bool:
        """Stop work on devices that failed, and work whose drain has reached its end."""
        self._reconciled_inventory_at = self._inventory_at
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
                changed |= self._stop_on_fault(request, fault, now)
            elif drain is not None:
                changed |= self._stop_for_drain(lease, request, drain, now)
        return changed

    def _stop_on_fault(self, request: RequestRecord, fault: Mark, now: float) -> bool:
        if request.state is State.STOPPING and not _may_be_device_fault(request):
            return False
        device = self._devices().get(fault.target)
        name = device_name(device) if device else fault.target
        session = request.kind is Kind.SESSION and request.state is not State.GRANTED
        requeued = request.state is State.GRANTED or (
            not session and may_retry_device_fault(self._context, request)
        )
        if session:
            what_next = "This session is not charged, and saved files are kept."
        elif requeued:
            what_next = (
                "The job is queued again, first in its priority class, and this attempt is not "
                "charged."
            )
        else:
            what_next = "The job is not tried again; this attempt is not charged."
        cause = Cause(
            code=CauseCode.DEVICE_FAULT,
            message=f"Its device {name} failed{_evidence(fault)}. {what_next}",
            details=fault.why,
        )
        if not requeued:
            after = self._store.apply(request.id, lifecycle.stop, State.FAILED, cause, now=now)
        else:
            after = self._store.apply(request.id, lifecycle.halt, cause, now=now)
        return after != request

    def _stop_for_drain(
        self, lease: LeaseRecord, request: RequestRecord, drain: Mark, now: float
    ) -> bool:
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


def _evidence(fault: Mark) -> str:
    """Return what was found, as the second part of a sentence."""
    found = fault.why.strip().rstrip(".")
    return f": {found}" if found else ""


def _failed(device: Device, reported: set[str], held: set[str]) -> bool:
    """Whether the device failed; the driver may be absent for a while when it is restarted."""
    if device.health is Health.SICK:
        return True
    if device.health is not Health.GONE:
        return False
    return device.id in reported or (device.id in held and not device.simulated)


def _may_be_device_fault(request: RequestRecord) -> bool:
    cause = request.cause
    return (
        request.target is State.FAILED
        and cause is not None
        and cause.code in _POSSIBLE_DEVICE_FAULT
    )


def _first(marks: Mapping[str, Mark], names: Sequence[str]) -> Mark | None:
    return next((marks[name] for name in names if name in marks), None)
