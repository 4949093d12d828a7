"""What the times of runs say about their devices: their cells, their steps and their predictions.

Slow cells and runs show beside earlier ones, and steps also beside those of the same run before,
once it is known from other devices whether the program becomes slower by itself.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...insight.health.contention import contention
from ...insight.health.run_pace import RunPace
from ...insight.health.step_pace import StepComparison, StepHistory, SteppedRun, step_times
from ...records.leases import LeaseRecord
from ...records.requests import RequestRecord
from ...runtime.context import Context

if TYPE_CHECKING:
    from ..utilization import UtilizationSampler

log = logging.getLogger(__name__)


@dataclass(slots=True)
class RunEvidence:
    """Compares runs on one device each; its state may be lost."""

    context: Context
    utilization: UtilizationSampler
    _pace: RunPace = field(default_factory=RunPace)
    _slowing: RunPace = field(
        default_factory=lambda: RunPace(
            slow="slowing run", compared="became slower in the middle, unlike on other devices"
        )
    )
    _steps: StepHistory = field(default_factory=StepHistory)
    _slow_at: dict[str, float] = field(default_factory=dict)

    def slow_at(self, device: str) -> float:
        """Return when runs of several users were last slow on a device; 0: never."""
        return self._slow_at.get(device, 0.0)

    def forget(self, device: str) -> None:
        """Forget the runs on a device."""
        for each in (self._pace, self._slowing, self._steps):
            each.forget(device)
        self._slow_at.pop(device, None)
        self.context.device_evidence.publish(device, "")

    def add(
        self, lease: LeaseRecord, request: RequestRecord, now: float, *, complete: bool
    ) -> None:
        """Compare a run that has ended, unless it had several devices.

        Args:
            complete: whether it did its work; of another one the steps alone are compared.
        """
        if len(lease.devices) != 1:
            return
        device, waited = lease.devices[0], self._contention(lease, now)
        steps = self._compare_steps(device, request, waited)
        pace = self._seconds(lease, request, now, steps) if complete else None
        if not complete and steps is not None:
            pace = steps.elsewhere
        slow = pace is not None and self._pace.add(device, request.owner, *pace, waited)
        if steps is not None and steps.before is not None:
            slowing = self._slowing.add(device, request.owner, *steps.before, waited)
            slow = slow or slowing
        if slow:
            log.info("%s is doubted: runs of several users are slow on it", device)
            self._slow_at[device] = now
        found = filter(None, (self._pace.evidence(device), self._slowing.evidence(device)))
        self.context.device_evidence.publish(device, " ".join(found))

    def _seconds(
        self,
        lease: LeaseRecord,
        request: RequestRecord,
        now: float,
        steps: StepComparison | None,
    ) -> tuple[float, float] | None:
        """Return what a run took, and what its cells or steps took before, or its prediction."""
        pace = self.context.run_times.cell_pace(request, now)
        if pace is None and steps is not None:
            pace = steps.elsewhere
        if pace is not None:
            return pace
        forecast = self.context.run_times.forecast(request, now)
        if forecast is None or lease.epoch > 1:
            return None  # a later attempt need not take a whole run time
        return now - lease.granted_at, forecast.seconds

    def _compare_steps(
        self, device: str, request: RequestRecord, waited: str
    ) -> StepComparison | None:
        """Compare the steps of a run, and keep them if it waited for nothing else."""
        loop = self.context.progress.steps_of(request)
        # Steps of a sweep are its trials, which differ.
        if loop is None or request.job is None or request.job.sweep is not None:
            return None
        found = step_times(loop.marks)
        if found is None:
            return None
        job = request.job
        code = job.source_hash or " ".join([job.notebook_name, *job.command])
        run = SteppedRun(
            program=_hash(code, loop.cell, loop.of),
            conditions=_hash(sorted(job.parameters.items()), job.memory_bytes, self._model(device)),
            device=device,
            owner=request.owner,
            times=found,
        )
        comparison = self._steps.compare(run)
        if not waited:
            self._steps.add(run)
        return comparison

    def _model(self, device: str) -> str:
        """Return the model of a device: those of another one are faster or slower."""
        return next((e.model for e in self.context.store.devices() if e.id == device), "")

    def _contention(self, lease: LeaseRecord, now: float) -> str:
        """Return what a run waited for beside its device, and the busiest other work there."""
        series = self.utilization.series_of(lease.id)
        found = contention(series, self.utilization.pressure(lease.node, now))
        other = self.utilization.busiest_other(lease) if found else ""
        return f"{found}, beside {other}" if other else found


def _hash(*values: object) -> str:
    """Return a hash of what makes a difference between two runs."""
    return hashlib.sha256(repr(values).encode(errors="replace")).hexdigest()
