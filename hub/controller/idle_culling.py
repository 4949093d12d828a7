"""Warn and stop idle sessions that hold devices.

The rule is in ``scheduling.model.idleness``. The culler samples every running session that holds
devices and keeps the samples in memory. Warnings are in the store, so that a restarted service
continues the same countdown; samples are collected again.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from ..interfaces.backend import ActivitySample
from ..messages.requests import idle_cause
from ..records.leases import LeaseRecord
from ..records.requests import Cause, CauseCode, RequestFilter, RequestRecord
from ..runtime.context import Context
from ..scheduling.model import idleness
from ..scheduling.model.idleness import (
    ActivityLevel,
    DeviceActivity,
    IdleDecision,
    IdleSample,
    IdleWarning,
    IdleWatch,
    KernelReport,
)
from ..scheduling.model.snapshot import Kind
from ..scheduling.model.states import State
from ..transitions import idle_warnings, lifecycle

SETTLE_SECONDS = 60.0
"""How long the service waits after its start for sessions to report their kernels."""
_ALL = 100_000

log = logging.getLogger(__name__)


@dataclass(slots=True)
class IdleCulling:
    """Called by the loop in a thread of its own, never twice at the same time.

    Attributes:
        countdown: seconds between a warning and the end of the session.
        every: seconds between two samples; follows the group with the shortest idle limit.
    """

    context: Context
    countdown: float
    every: float = 1.0
    _began: float | None = None
    """Time of the first sample."""
    _watches: dict[str, IdleWatch] = field(default_factory=dict)
    """Samples by lease."""

    def reconcile(self) -> None:
        """Sample every running session with devices; warn, withdraw a warning, or stop."""
        c = self.context
        idle_seconds = {group.name: group.idle_seconds for group in c.store.groups()}
        strictest = min(filter(None, idle_seconds.values()), default=self.countdown)
        self.every = idleness.sample_interval(strictest, self.countdown)
        running = c.store.requests(
            RequestFilter(kind=Kind.SESSION, states=frozenset({State.RUNNING}), limit=_ALL)
        )
        c.kernel_reports.keep_only([request.id for request in running])
        pairs = [(r.lease, r) for r in running if r.lease is not None and r.lease.devices]
        self._watches = {
            lease.id: watch for lease, _ in pairs if (watch := self._watches.get(lease.id))
        }
        if not pairs:
            return
        activity = c.backend.activity({lease.id: lease.handle for lease, _ in pairs})
        now = c.clock()
        self._began = now if self._began is None else self._began
        for lease, request in pairs:
            kernels = c.kernel_reports.get(request.id, now=now)
            if kernels is None and now - self._began < SETTLE_SECONDS:
                continue
            sample = _sample(lease, kernels, activity, now)
            watch = idleness.observed(self._watches.get(lease.id), sample, every=self.every)
            self._watches[lease.id] = watch
            # A removed group has no rule. The request is read again because sampling may take
            # seconds, and its owner may have acted meanwhile.
            self._act(c.store.request(request.id), watch, idle_seconds.get(request.group, 0))

    def forget(self) -> None:
        """Drop all samples, as a restart does."""
        self._began, self._watches = None, {}

    def _act(self, request: RequestRecord, watch: IdleWatch, idle_seconds: float) -> None:
        c, now = self.context, watch.last.at
        match idleness.decision(
            watch, request.warning, kept_at=request.kept_at, idle_seconds=idle_seconds
        ):
            case IdleDecision.LEAVE:
                return
            case IdleDecision.WARN:
                # After a restart there are few samples: the first warning has better values.
                first = request.warning
                warning = IdleWarning(
                    warned_at=now,
                    stops_at=now + self.countdown,
                    idle_since=first.idle_since if first else watch.quiet_since,
                    seen=first.seen if first else idleness.evidence(watch),
                )
                c.store.apply(request.id, idle_warnings.warn, warning, now=now)
            case IdleDecision.WITHDRAW:
                why = watch.work if idle_seconds > 0 else "Its group no longer has an idle rule."
                c.store.apply(request.id, idle_warnings.withdraw_warning, why, now=now)
            case IdleDecision.STOP if request.warning is not None:
                warning = request.warning
                message = idle_cause(now - warning.idle_since, warning.seen)
                cause = Cause(code=CauseCode.IDLE, message=message)
                c.store.apply(request.id, lifecycle.stop, State.CANCELLED, cause, now=now)
                log.info("%s is stopped: %s", request.id, message)
        c.notifier.notify()


def _sample(
    lease: LeaseRecord, kernels: KernelReport | None, activity: ActivitySample, now: float
) -> IdleSample:
    """Return what is known now: what a session measures itself is better than its engine's."""
    cpu, use = activity.cpu_seconds.get(lease.id), ActivityLevel.UNKNOWN
    if kernels is not None and kernels.cpu_seconds is not None:
        cpu, use = kernels.cpu_seconds, kernels.devices or use
    unmeasured = [DeviceActivity(name=name, use=use) for name in lease.devices]
    return IdleSample(
        at=now,
        kernels=kernels,
        cpu_seconds=cpu,
        devices=tuple(activity.devices.get(device.name, device) for device in unmeasured),
    )
