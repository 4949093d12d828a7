"""Tell the owner of a job that ran out of memory how much it would have needed."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..insight.memory_growth import SteadyGrowth, steady_growth
from ..insight.memory_need import CompletedRun, MemoryNeed, NeedBasis, memory_need
from ..insight.past_runs import PlannedRun
from ..interfaces.store import Store
from ..messages import memory_need as messages
from ..messages.units import complete_sentence
from ..records.json_value import Json
from ..records.requests import Cause, CauseCode, RequestFilter, RequestRecord
from ..records.utilization import UtilizationSeries, UtilizationSummary
from ..runtime.context import Context
from ..scheduling.model.snapshot import Kind
from ..scheduling.model.states import State
from .job_history import plan_of

log = logging.getLogger(__name__)

_CONSIDERED = 300
"""Number of newest jobs of the owner among which those with the same code are found."""
_MOST_BYTES = 1 << 50
_LEAST_SECONDS = 60.0
"""Growth over a shorter time is not extrapolated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shortage:
    """What the runner has reported of the lack of memory, in bytes; 0 if unknown."""

    used: int = 0
    wanted: int = 0
    device: bool = False


def with_memory_need(context: Context, ended: RequestRecord) -> Cause | None:
    """Return the cause of an end for lack of memory with what the job would have needed.

    None if there is nothing to add. It is advice: an error is logged, and the cause stays as it is.
    """
    cause = ended.cause
    if ended.kind is not Kind.JOB or cause is None or cause.code is not CauseCode.OUT_OF_MEMORY:
        return None
    if messages.MARK in cause.message:
        return None  # After a crash between this transition and the next.
    try:
        sentence = _sentence(context, ended)
    except Exception:
        log.exception("what %s would have needed is not known", ended.id)
        return None
    return replace(cause, message=f"{complete_sentence(cause.message)} {sentence}")


def _sentence(context: Context, ended: RequestRecord) -> str:
    store, reported = context.store, _shortage(context.store, ended)
    shortage = reported or _Shortage()
    if ended.gang is not None:
        # What was measured is that of all members together, and one of them ran out.
        need = memory_need(None, shortage.used + shortage.wanted, [])
        return _told(store, ended, need, device=shortage.device)
    series = _series(store, ended)
    # What was asked for comes on top of what was used then, which need not be the peak.
    peak = max(
        shortage.used + shortage.wanted, _peak(series.summary, ended, device=shortage.device)
    )
    if reported is None and ended.job is not None:
        peak = max(peak, ended.job.memory_bytes)  # The engine has ended it above its limit.
    plan = plan_of(ended, ended.submitted_at)
    earlier = [] if plan is None else _earlier(store, ended, plan, device=shortage.device)
    growth = _growth(series, ended, device=shortage.device)
    left = 0.0 if growth is None else _seconds_left(context, ended)
    need = memory_need(plan, peak, earlier, growth, left)
    return _told(store, ended, need, device=shortage.device)


def _told(store: Store, ended: RequestRecord, need: MemoryNeed | None, *, device: bool) -> str:
    if need is None:
        return messages.unknown_need(device=device)
    return f"{_need_sentence(need)} {_advice(store, ended, need, device=device)}"


def _need_sentence(need: MemoryNeed) -> str:
    match need.basis:
        case NeedBasis.SAME_PARAMETERS:
            return messages.need_of_same_parameters(need.amount, need.runs)
        case NeedBasis.OTHER_PARAMETERS:
            return messages.need_by_parameters(need.amount, need.runs)
        case NeedBasis.GROWTH:
            return messages.need_by_growth(need.amount, need.rate)
        case NeedBasis.PEAK:
            return messages.least_need(need.amount)


def _advice(store: Store, ended: RequestRecord, need: MemoryNeed, *, device: bool) -> str:
    if device:
        devices = store.devices()
        held = () if ended.lease is None else ended.lease.devices
        # The memory of its own devices was not enough, whatever was measured.
        least = max([need.amount, *(each.memory_bytes for each in devices if each.id in held)])
        models = {each.model for each in devices if each.memory_bytes > least}
        return messages.device_advice(need.amount, sorted(models))
    lower_bound = need.basis is NeedBasis.PEAK
    limit = messages.suggested_memory_limit(need.amount, lower_bound=lower_bound)
    own = 0 if ended.job is None else ended.job.memory_bytes
    if own >= limit:
        return messages.sufficient_limit(own)
    return messages.memory_limit_advice(limit, lower_bound=lower_bound)


def _shortage(store: Store, ended: RequestRecord) -> _Shortage | None:
    """Return what the runner of the last attempt has reported; None if it has reported no end."""
    epoch = 0 if ended.lease is None else ended.lease.epoch
    for event in reversed(store.events(ended.id, kinds=frozenset({"ended"}))):
        if event.epoch == epoch:
            known = event.data.get("memory")
            found = known if isinstance(known, Mapping) else {}
            return _Shortage(
                used=_bytes(found.get("used")),
                wanted=_bytes(found.get("wanted")),
                device=found.get("device") is True,
            )
    return None


def _bytes(value: Json) -> int:
    """Return a number of bytes that a job can have used; 0 for anything else."""
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return value if 0 < value < _MOST_BYTES else 0


def _series(store: Store, ended: RequestRecord) -> UtilizationSeries:
    if ended.lease is None:
        return UtilizationSeries()
    return store.utilization_of([ended.lease.id]).get(ended.lease.id, UtilizationSeries())


def _earlier(
    store: Store, ended: RequestRecord, plan: PlannedRun, *, device: bool
) -> Sequence[CompletedRun]:
    """Return the owner's completed jobs with the same code, oldest first."""
    found = store.requests(
        RequestFilter(
            owner=ended.owner,
            kind=Kind.JOB,
            states=frozenset({State.SUCCEEDED}),
            limit=_CONSIDERED,
        )
    )
    by_lease = {each.lease.id: each for each in found if each.lease is not None}
    plans = {
        lease_id: other
        for lease_id, each in by_lease.items()
        if (other := plan_of(each, each.submitted_at)) is not None
        and other.program == plan.program
        and (not device or other.model == plan.model)
    }
    peaks = store.utilization_summaries(list(plans)) if plans else {}
    runs = [
        CompletedRun(plan=other, peak=_peak(peaks[lease_id], by_lease[lease_id], device=device))
        for lease_id, other in reversed(plans.items())
        if lease_id in peaks
    ]
    return [run for run in runs if run.peak]


def _peak(summary: UtilizationSummary, request: RequestRecord, *, device: bool) -> int:
    """Return the measured peak in bytes, of one device if it is that of devices; 0 if unknown."""
    if device:
        return (summary.peak_device_bytes or 0) // max(1, request.devices)
    return summary.peak_memory_bytes or 0


def _growth(
    series: UtilizationSeries, request: RequestRecord, *, device: bool
) -> SteadyGrowth | None:
    """Return the growth over the last half of the attempt, of one device if it is of devices."""
    parts = max(1, request.devices) if device else 1
    pairs = [
        (series.begins + number * series.seconds, value)
        for number, point in enumerate(series.points)
        if (value := point.device_bytes if device else point.memory_bytes) is not None
    ]
    half = pairs[len(pairs) // 2 :]
    if not half or half[-1][0] - half[0][0] < _LEAST_SECONDS:
        return None
    return steady_growth([at for at, _ in half], [value / parts for _, value in half])


def _seconds_left(context: Context, ended: RequestRecord) -> float:
    """Return how long the job would have run, by its likely run time; 0 if that is unknown."""
    if ended.lease is None:
        return 0.0
    now = context.clock()
    found = context.run_times.forecast(ended, now)
    if found is None or found.basis is None:
        return 0.0
    return max(0.0, found.seconds - (now - ended.lease.granted_at))
