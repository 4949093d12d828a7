"""Validate free devices, and release those from quarantine that pass.

A device is marked before it is measured, by the loop itself, so that nothing is granted meanwhile;
the mark is removed when the result is stored, or when a new service starts. One set of devices of
one node and model is measured at a time, for at most ``MOST_VALIDATION_SECONDS``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Final

from ...insight.health.findings import Consequence, DeviceFinding, FindingKind
from ...insight.health.validation import validation_failures
from ...interfaces.devices import ValidationReading
from ...messages.units import device_name
from ...records.audit import SERVICE, AuditAction, AuditEntry
from ...runtime.context import Context
from ...scheduling.model.snapshot import Device, Health, Mark, MarkKind
from .device_condition import quarantine
from .validation_store import StoredValidation, ValidationStore

log = logging.getLogger(__name__)

IDLE_SECONDS: Final = 6 * 3600.0
"""A device that has been free for this long is validated again."""
TO_RELEASE: Final = 2
TO_RELEASE_FAULT: Final = 3
"""Validations in a row that a suspect and a broken device must pass, …"""
APART_SECONDS: Final = 300.0
APART_FAULT_SECONDS: Final = 1200.0
"""… and the time between two of them."""
DOUBT_SECONDS: Final = 3600.0
"""Failures and slow runs make a device due at most once in this time."""
UNAVAILABLE_SECONDS: Final = 86_400.0
"""After this time it is tried again where no validation was possible."""
_WHY: Final = "Validation by Carrel: it takes about 20 seconds."


@dataclass(slots=True)
class DeviceValidation:
    """Called by the loop in its own thread; ``measure`` is called in another one.

    Attributes:
        booted_at: when the machine of the service started, in seconds since the epoch.
    """

    context: Context
    store: ValidationStore
    booted_at: float = 0.0
    _free_since: dict[str, float] = field(default_factory=dict)
    _not_before: dict[str, float] = field(default_factory=dict)
    _doubts: dict[str, float] = field(default_factory=dict)
    _measured: tuple[Device, ...] = ()
    _tidied: bool = False

    def choose(self, now: float, doubted_at: Callable[[str], float]) -> Callable[[], None] | None:
        """Mark the devices that are due, and return the action that measures them.

        Args:
            doubted_at: when an attempt last failed or was slow on a device as on a broken one.
        """
        if self._measured:
            return None
        if not self._tidied:
            remove_validation_marks(self.context)
            self._tidied = True
        store = self.context.store
        held = {name for holding in store.allocations() for name in holding.devices}
        devices = store.devices()
        for device in devices:
            if device.id in held:
                self._free_since[device.id] = now
        free = [d for d in devices if d.id not in held and _measurable(d)]
        if not free:
            return None
        known = self.store.all()
        due = [d for d in free if self._is_due(d, known.get(d.id, ()), doubted_at(d.id), now)]
        if not due:
            return None
        chosen = _together(due)
        self._tidied = False  # until the marks are removed
        for device in chosen:
            mark = Mark(target=device.id, kind=MarkKind.VALIDATION, since=now, why=_WHY, by=SERVICE)
            store.put_mark(mark)
        for device in chosen:
            if self._is_doubted(device, known.get(device.id, ()), doubted_at(device.id), now):
                self._doubts[device.id] = now
            # Where nothing can be measured, it is not due again at once.
            self._not_before[device.id] = now + UNAVAILABLE_SECONDS
        self._measured = chosen
        return self._measure

    def _is_due(
        self, device: Device, known: Sequence[StoredValidation], doubted_at: float, now: float
    ) -> bool:
        last = _last(known, now)
        if self._not_before.get(device.id, 0.0) > now:
            return False
        mark = device.quarantine
        if mark is not None:
            apart = APART_FAULT_SECONDS if mark.fault else APART_SECONDS
            return now - last >= apart or last < mark.since
        if device.simulated:  # nothing of it can have changed
            return False
        free_since = self._free_since.setdefault(device.id, now)
        idle = now - max(free_since, last) >= IDLE_SECONDS
        doubted = self._is_doubted(device, known, doubted_at, now)
        return last < self.booted_at or not known or doubted or idle

    def _is_doubted(
        self, device: Device, known: Sequence[StoredValidation], doubted_at: float, now: float
    ) -> bool:
        before = self._doubts.get(device.id)
        lately = before is not None and 0 <= now - before < DOUBT_SECONDS
        return _last(known, now) < doubted_at <= now and not lately

    def _measure(self) -> None:
        """Measure the marked devices, store the results and remove the marks."""
        try:
            readings = self.context.backend.validate_devices(self._measured)
            known = self.store.all()
            for device in self._measured:
                reading = readings.get(device.id)
                if reading is not None:
                    self._judge(device, reading, known)
        finally:
            # If the database fails here, the next choice removes the marks.
            try:
                remove_validation_marks(self.context)
                self._tidied = True
            finally:
                self._measured = ()
                self.context.notifier.notify()

    def _judge(
        self,
        device: Device,
        reading: ValidationReading,
        known: Mapping[str, Sequence[StoredValidation]],
    ) -> None:
        now = self.context.clock()
        if reading.unavailable:
            log.info("%s cannot be validated: %s", device.id, reading.unavailable)
            return
        del self._not_before[device.id]
        past = [each.rates for each in known.get(device.id, ()) if each.passed]
        failures = validation_failures(reading, past, self._siblings(device, known))
        self.store.add(
            StoredValidation(
                device=device.id,
                at=now,
                passed=not failures,
                rates=reading.rates,
                evidence=" ".join(failures),
            )
        )
        if failures:
            finding = DeviceFinding(
                target=device.id,
                kind=FindingKind.FAILED_VALIDATION,
                consequence=Consequence.SUSPECT,
                evidence=" ".join(failures),
            )
            quarantine(self.context, device, finding, now)
        else:
            self._release_if_passed(device, now)

    def _siblings(
        self, device: Device, known: Mapping[str, Sequence[StoredValidation]]
    ) -> list[Mapping[str, float]]:
        """Return what devices of its model on its node reached in their last validation."""
        return [
            known[other.id][0].rates
            for other in self.context.store.devices()
            if other.id != device.id
            and (other.node, other.model) == (device.node, device.model)
            and known.get(other.id)
            and known[other.id][0].passed
        ]

    def _release_if_passed(self, device: Device, now: float) -> None:
        """End a quarantine by the service after enough validations in a row."""
        found = (each for each in self.context.store.devices() if each.id == device.id)
        mark = next((each.quarantine for each in found), None)
        if mark is None or mark.by not in ("", SERVICE):
            return
        enough = TO_RELEASE_FAULT if mark.fault else TO_RELEASE
        last = self.store.all().get(device.id, ())[:enough]
        if len(last) < enough or not all(each.passed and each.at >= mark.since for each in last):
            return
        log.info("%s is released: it has passed %d validations", device.id, enough)
        self.context.store.remove_mark(
            device.id,
            MarkKind.QUARANTINE,
            change=AuditEntry(
                at=now,
                who=SERVICE,
                action=AuditAction.RELEASE,
                target=device.id,
                why=f"It has passed {enough} validations in a row.",
                before={"why": mark.why},
                after={"device": device_name(device), "node": device.node},
            ),
        )


def remove_validation_marks(context: Context) -> None:
    """Remove the marks of a measurement that has ended, or of a service that was killed."""
    for mark in context.store.marks():
        if mark.kind is MarkKind.VALIDATION:
            context.store.remove_mark(mark.target, MarkKind.VALIDATION)


def measured_devices(context: Context) -> frozenset[str]:
    """Return the devices that are being measured."""
    return frozenset(
        mark.target for mark in context.store.marks() if mark.kind is MarkKind.VALIDATION
    )


def without_own_process(reported: Sequence[Device], measured: Set[str]) -> tuple[Device, ...]:
    """Return the devices of an inventory; the process that measures some is no foreign one."""
    return tuple(
        replace(device, health=Health.OK, why="")
        if device.health is Health.BUSY and device.id in measured
        else device
        for device in reported
    )


def _last(known: Sequence[StoredValidation], now: float) -> float:
    """Return when a device was last validated; a step of the clock must not put it off for ever."""
    return min(known[0].at, now) if known else 0.0


def _measurable(device: Device) -> bool:
    """Whether nothing but a quarantine by the service keeps work from it."""
    mark = device.quarantine
    return device.health is Health.OK and all(
        each is mark and each.by in ("", SERVICE) for each in device.marks
    )


def _together(due: Sequence[Device]) -> tuple[Device, ...]:
    """Return the devices to measure at one time: one from quarantine, or those of one node."""
    suspects = [device for device in due if device.quarantine is not None]
    if suspects:
        return (suspects[0],)
    first = due[0]
    return tuple(d for d in due if (d.node, d.model) == (first.node, first.model))
