"""Quarantine devices whose readings or jobs show a fault that their driver does not report.

A hardware error ends the work on its device, as in ``device_faults``. A device that is only suspect
takes no new work, and the work on it continues: nothing is stopped on suspicion.
"""

from __future__ import annotations

import logging
import re
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ...insight.health.accusation import (
    AttemptEnd,
    accused_code,
    accused_devices,
    names_device,
)
from ...insight.health.device_monitor import DeviceMonitor
from ...insight.health.findings import Consequence, DeviceFinding, FindingKind
from ...messages.units import complete_sentence, device_name
from ...records.audit import SERVICE, AuditAction, AuditEntry
from ...records.leases import LeaseRecord
from ...records.requests import CauseCode, RequestRecord
from ...runtime.context import Context
from ...scheduling.model.snapshot import Device, Mark, MarkKind
from ...scheduling.model.states import State
from ...transitions import lifecycle
from .run_evidence import RunEvidence

if TYPE_CHECKING:
    from ..utilization import UtilizationSampler

log = logging.getLogger(__name__)

_MOST_ENDS = 2_000
_MOST_EVIDENCE = 1_000
"""Characters of the evidence of one quarantine."""
_NUMBER = re.compile(r"\d+(\.\d+)?")
_PROGRAM_DIED = frozenset({CauseCode.KERNEL_DIED, CauseCode.LOST})
_MAY_NAME_DEVICE = frozenset({CauseCode.CELL_ERROR, CauseCode.COMMAND_FAILED})
_UNSEEN_SECONDS = 30.0
"""An attempt without a sign of life for this long may have died with its node."""


@dataclass(slots=True)
class AttemptEnds:
    """The last attempts on devices and how they ended; safe to use from any thread."""

    _ends: deque[AttemptEnd] = field(default_factory=lambda: deque(maxlen=_MOST_ENDS))
    _failed_at: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, end: AttemptEnd) -> None:
        with self._lock:
            self._ends.append(end)
            if end.suspicious:
                self._failed_at |= dict.fromkeys(end.devices, end.at)

    def all(self) -> tuple[AttemptEnd, ...]:
        with self._lock:
            return tuple(self._ends)

    def forget(self, device: str) -> None:
        """Forget the attempts on a device."""
        with self._lock:
            kept = [end for end in self._ends if device not in end.devices]
            self._ends = deque(kept, maxlen=_MOST_ENDS)
            self._failed_at.pop(device, None)

    def failed_at(self, device: str) -> float:
        """Return when an attempt last failed on it as on a broken device; 0: never."""
        with self._lock:
            return self._failed_at.get(device, 0.0)


@dataclass(slots=True)
class DeviceCondition:
    """Called by the loop; its state may be lost.

    Attributes:
        booted_at: when the machine of the service started, in seconds since the epoch.
        node: its name.
    """

    context: Context
    utilization: UtilizationSampler
    booted_at: float = 0.0
    node: str = ""
    _monitor: DeviceMonitor = field(default_factory=DeviceMonitor)
    _ends: AttemptEnds = field(default_factory=AttemptEnds)
    _runs: RunEvidence = field(init=False)
    _unhandled: dict[tuple[str, FindingKind], DeviceFinding] = field(default_factory=dict)
    _quarantined: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self._runs = RunEvidence(self.context, self.utilization)

    def observe(self, reported: Sequence[Device], now: float) -> None:
        """Judge the readings of an inventory, and the attempts that have ended.

        A finding that cannot be stored is tried again at the next inventory.
        """
        signals = self.context.backend.device_signals()
        self._forget_released()
        findings = self._monitor.observe(reported, signals)
        accused = accused_devices(self._ends.all(), now)
        for each in accused:
            self._ends.forget(each.target)
        for finding in (*findings, *accused):
            self._unhandled[finding.target, finding.kind] = finding
        devices = {device.id: device for device in self.context.store.devices()}
        for key, finding in list(self._unhandled.items()):
            try:
                self._handle(finding, devices.get(finding.target), now)
                del self._unhandled[key]
            except Exception:
                # One device must not keep the others from being quarantined.
                log.exception("%s: %s", finding.target, finding.evidence)

    def _forget_released(self) -> None:
        """Forget what was told about devices that are back in service, such as repaired ones."""
        marks = self.context.store.marks()
        quarantined = frozenset(m.target for m in marks if m.kind is MarkKind.QUARANTINE)
        for device in self._quarantined - quarantined:
            self._ends.forget(device)
            self._runs.forget(device)
            self._monitor.release(device)
        self._quarantined = quarantined

    def _handle(self, finding: DeviceFinding, device: Device | None, now: float) -> None:
        if finding.consequence is Consequence.NOTICE or device is None:
            log.warning("%s: %s", finding.target, finding.evidence)
        else:
            quarantine(self.context, device, finding, now)

    def doubted_at(self, device: str) -> float:
        """Return when an attempt last failed or was slow on it as on a broken device; 0: never."""
        return max(self._ends.failed_at(device), self._runs.slow_at(device))

    # -- attempts -------------------------------------------------------------------------

    def record_end(
        self, lease: LeaseRecord, request: RequestRecord, now: float, *, seen: float
    ) -> None:
        """Record how an attempt on devices ended.

        If its owner fails on device after device, its cause says that the code is the likely
        reason.

        Args:
            seen: the last sign of life of the attempt.
        """
        if not lease.devices:
            return
        cause = request.cause
        code = cause.code if cause else None
        died = code in _PROGRAM_DIED or self._was_lost(lease, request)
        suspicious = died and not self._may_have_died_with_node(lease, now, seen)
        if cause is not None and code in _MAY_NAME_DEVICE:
            suspicious = names_device(f"{cause.message}\n{cause.details}")
        job = request.job
        self._ends.add(
            AttemptEnd(
                at=now,
                owner=request.owner,
                request=request.id,
                devices=lease.devices,
                program=(job.source_hash or job.notebook_name or " ".join(job.command))
                if job
                else "",
                suspicious=suspicious,
                succeeded=code is CauseCode.SUCCEEDED,
                died=died,
                node=lease.node,
            )
        )
        if code in (CauseCode.SUCCEEDED, CauseCode.TIME_LIMIT):
            self._runs.add(lease, request, now, complete=code is CauseCode.SUCCEEDED)
        if suspicious and cause is not None and request.state is State.STOPPING:
            self._tell_owner(request, now)

    def _may_have_died_with_node(self, lease: LeaseRecord, now: float, seen: float) -> bool:
        """Whether the node was restarted during the attempt, or may have been meanwhile."""
        restarted = lease.node == self.node and lease.granted_at < self.booted_at <= now
        return restarted or not 0 <= now - seen <= _UNSEEN_SECONDS

    def _was_lost(self, lease: LeaseRecord, request: RequestRecord) -> bool:
        """Whether the processes of an attempt disappeared, and its job is queued again."""
        if request.state is not State.QUEUED:
            return False
        events = self.context.store.events(request.id, kinds=frozenset({"state"}))
        return any(
            event.epoch == lease.epoch and event.data.get("state") == State.LOST for event in events
        )

    def _tell_owner(self, request: RequestRecord, now: float) -> None:
        found = accused_code(self._ends.all(), now)
        accused = next((each for each in found if each.request == request.id), None)
        if accused is None or request.cause is None or accused.sentence in request.cause.message:
            return
        message = f"{complete_sentence(request.cause.message)} {accused.sentence}"
        told = replace(request.cause, message=message)
        self.context.store.apply(request.id, lifecycle.amend_cause, told, now=now)


def _quarantines(mark: Mark, device: Device) -> bool:
    return mark.target == device.id and mark.kind is MarkKind.QUARANTINE


def _without_numbers(evidence: str) -> str:
    """Return what evidence of the same kind has in common, whatever was measured."""
    return _NUMBER.sub("0", evidence)


def quarantine(context: Context, device: Device, finding: DeviceFinding, now: float) -> None:
    """Quarantine a device, or add the evidence to a quarantine by the service."""
    mark = next((each for each in context.store.marks() if _quarantines(each, device)), None)
    if mark is not None and mark.by not in ("", SERVICE):
        return
    why, by = finding.evidence, "" if finding.consequence is Consequence.FAULT else SERVICE
    if mark is not None:
        worse = finding.consequence is Consequence.FAULT and not mark.fault
        if not worse and _without_numbers(finding.evidence) in _without_numbers(mark.why):
            return
        why = f"{complete_sentence(mark.why)} {why}"[:_MOST_EVIDENCE]
        by = "" if mark.fault else by
    log.warning("%s is quarantined: %s", device.id, why)
    context.store.put_mark(
        Mark(
            target=device.id,
            kind=MarkKind.QUARANTINE,
            since=mark.since if mark else now,
            why=why,
            by=by,
        ),
        change=AuditEntry(
            at=now,
            who=SERVICE,
            action=AuditAction.QUARANTINE,
            target=device.id,
            why=why,
            after={"device": device_name(device), "node": device.node},
        ),
    )
    context.notifier.notify()
