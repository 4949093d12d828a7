"""Sessions that hold devices and do nothing: warned, kept once by a click, or stopped.

The rule is in ``scheduling.idleness``. Here is what it takes: looks at every running session
that holds devices, and a memory of them. The warning itself is in the store, so that a service
that was killed goes on with the same countdown; what was seen before it is not, and is gathered
again.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from ..errors import Conflict, Forbidden, NotFound
from ..interfaces.backend import ActivitySample
from ..messages.requests import idle_cause
from ..records.identity import Identity
from ..records.leases import LeaseRecord
from ..records.requests import Cause, CauseCode, RequestFilter, RequestRecord
from ..requests import serializers
from ..requests.presenter import dated_drains, drain_of
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
from ..schemas import KernelsIn, RequestOut, WatchOut
from ..sessions.activity import _WARNED_REPORT_SECONDS, SLOW_REPORT_SECONDS

SETTLE_SECONDS = 60.0
"""After its start the service waits this long for sessions to tell of their kernels."""
_ALL = 100_000

log = logging.getLogger(__name__)


@dataclass(slots=True)
class IdleCulling:
    """Everything about idle sessions: what the loop does, and what people and sessions ask.

    Attributes:
        countdown: seconds between a warning and the end.
        every: seconds between two looks, as the strictest group needs it.
    """

    commands: Context
    countdown: float
    every: float = 1.0
    # When it looked first, and what it knows of each lease.
    _began: float | None = None
    _watches: dict[str, IdleWatch] = field(default_factory=dict)

    # -- for the loop: asked in a thread of its own, once at a time -----------------------

    def look(self) -> None:
        """One look at every session in question, and what follows from it."""
        c = self.commands
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
            look = _look(lease, kernels, activity, now)
            watch = idleness.observed(self._watches.get(lease.id), look, every=self.every)
            self._watches[lease.id] = watch
            # A group that is gone has no rule any more.
            # Read again: the driver may have taken its time, and people act meanwhile.
            self._act(c.store.request(request.id), watch, idle_seconds.get(request.group, 0))

    def _act(self, request: RequestRecord, watch: IdleWatch, idle_seconds: float) -> None:
        c, now = self.commands, watch.last.at
        match idleness.decision(
            watch, request.warning, kept_at=request.kept_at, idle_seconds=idle_seconds
        ):
            case IdleDecision.LEAVE:
                return
            case IdleDecision.WARN:
                # After a gap the watch is young: the first warning knows it better.
                first = request.warning
                warning = IdleWarning(
                    warned_at=now,
                    stops_at=now + self.countdown,
                    idle_since=first.idle_since if first else watch.quiet_since,
                    seen=first.seen if first else idleness.evidence(watch),
                )
                c.store.warn_idle(request.id, warning, now=now)
            case IdleDecision.WITHDRAW:
                why = watch.work if idle_seconds > 0 else "Its group has no idle rule any more."
                c.store.withdraw_warning(request.id, why, now=now)
            case IdleDecision.STOP if request.warning is not None:
                warning = request.warning
                message = idle_cause(now - warning.idle_since, warning.seen)
                cause = Cause(code=CauseCode.IDLE, message=message)
                c.store.stop(request.id, State.CANCELLED, cause, now=now)
                log.info("%s is stopped: %s", request.id, message)
        c.notifier.notify()

    # -- for people and sessions ----------------------------------------------------------

    def keep(self, who: Identity, request_id: str) -> RequestOut:
        """Its owner keeps it, once; the idle time is counted anew.

        Raises:
            Conflict: it is not warned, or was kept before.
        """
        record = self._own(who, request_id, "keep")
        self.commands.store.keep_idle(record.id, now=self.commands.clock())
        self.commands.notifier.notify()
        return self.commands.request(who, record.id)

    def tell(self, who: Identity, request_id: str, body: KernelsIn) -> WatchOut:
        """A session says what its kernels do, and hears whether it is about to be stopped."""
        c, now = self.commands, self.commands.clock()
        record = self._own(who, request_id, "speak for")
        if record.kind is not Kind.SESSION or record.state is not State.RUNNING:
            raise Conflict(f"{record.id} is no session that runs.")
        cell_at = None if body.cell_seconds_ago is None else now - body.cell_seconds_ago
        kernels = KernelReport(count=body.count, running=body.running, cell_at=cell_at)
        c.kernel_reports.put(record.id, kernels, now=now)
        drain = drain_of(record, dated_drains(c.store.marks()))
        return WatchOut(
            state=record.state.value,
            warning=serializers.warning_out(record, drain),
            again_seconds=self._again(record),
        )

    def _again(self, record: RequestRecord) -> float:
        """After how many seconds the session shall tell again."""
        try:
            idle_seconds = self.commands.store.group(record.group).idle_seconds
        except NotFound:
            idle_seconds = 0
        if not record.devices or idle_seconds <= 0:
            return SLOW_REPORT_SECONDS
        longest = (
            idleness.MAX_REPORT_SECONDS if record.warning is None else (_WARNED_REPORT_SECONDS)
        )
        return min(longest, idleness.sample_interval(idle_seconds, self.countdown) / 2)

    def _own(self, who: Identity, request_id: str, verb: str) -> RequestRecord:
        record = self.commands.visible(who, request_id)
        if record.owner != who.name:
            raise Forbidden(f"Only its owner can {verb} {record.id}.")
        return record


def _look(
    lease: LeaseRecord, kernels: KernelReport | None, activity: ActivitySample, now: float
) -> IdleSample:
    unknown = [DeviceActivity(name=name, use=ActivityLevel.UNKNOWN) for name in lease.devices]
    return IdleSample(
        at=now,
        kernels=kernels,
        cpu_seconds=activity.cpu_seconds.get(lease.id),
        devices=tuple(activity.devices.get(each.name, each) for each in unknown),
    )
