"""The event loop of a replay: one decision for every moment with an event."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from heapq import heappop, heappush
from math import inf

from ...errors import InvalidInput
from ...scheduling.model.snapshot import Device
from ...scheduling.model.text import plural
from ...scheduling.placement.device_pool import DevicePool, largest_node
from ..policies.policy import Scheduler, Schedules, SimulatedSite
from ..workload.job_run import Run, request_of, whole
from ..workload.jobs import TraceJob
from .deadlock import held_back_runs, layout_rule
from .runtime_estimates import Estimator


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOutcome:
    """The result of one stream of jobs on one pool.

    Attributes:
        runs: the runs that ended.
        devices: number of devices.
        free: device-seconds that were free between the first submission and the last end.
        stranded: free device-seconds while jobs were queued: the next job could not use them.
    """

    runs: tuple[Run, ...]
    devices: int
    free: float
    stranded: float
    held_back: tuple[Run, ...] = ()
    """Runs that never ended: they wait for an unknown term, or reservations hold them."""


@dataclass(slots=True)
class _Idle:
    """Sum of free device-seconds from one moment to the next."""

    at: float
    free: float = 0.0
    stranded: float = 0.0

    def until(self, now: float, scheduler: Scheduler) -> None:
        idle = scheduler.free * (now - self.at)
        self.free += idle
        if scheduler.waiting:
            self.stranded += idle
        self.at = now


def simulate(
    jobs: Sequence[TraceJob], *, site: SimulatedSite, policy: Schedules, estimator: Estimator
) -> ReplayOutcome:
    """Run all jobs, in the order of submission, to their ends.

    Raises:
        InvalidInput: a job is larger than the pool, or could not start even alone.
    """
    replay = moments(jobs, site=site, policy=policy, estimator=estimator)
    while True:
        try:
            next(replay)
        except StopIteration as ended:
            outcome: ReplayOutcome = ended.value
            return outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A moment of a replay with an event, before its decision.

    Attributes:
        submitted: the runs that are new.
        ended: number of runs that have ended.
    """

    at: float
    submitted: Sequence[Run]
    ended: int


def moments(
    jobs: Sequence[TraceJob], *, site: SimulatedSite, policy: Schedules, estimator: Estimator
) -> Generator[Moment, None, ReplayOutcome]:
    """Yield the moments of a replay, each before its decision; return the result.

    Raises:
        InvalidInput: as in ``simulate``.
    """
    _check_sizes(jobs, site)
    scheduler = policy.scheduler(site)
    submit = _Submission(jobs, site, estimator)
    runs: list[Run] = []
    ends: list[tuple[float, int, int, Run]] = []
    idle = _Idle(at=jobs[0].submitted_at if jobs else 0.0)
    total = len(jobs)
    while True:
        now = min(
            jobs[len(runs)].submitted_at if len(runs) < total else inf,
            ends[0][0] if ends else inf,
            scheduler.next_change(),
        )
        if now == inf:
            break
        idle.until(now, scheduler)
        known, ended = len(runs), 0
        while ends and ends[0][0] <= now:
            _, _, turn, run = heappop(ends)
            if run.turn == turn:
                scheduler.end(run, now)
                run.end(now)
                ended += 1
                estimator.ended(run.job)
        while len(runs) < total and jobs[len(runs)].submitted_at <= now:
            run = submit(len(runs))
            scheduler.submit(run, now)
            runs.append(run)
        yield Moment(at=now, submitted=runs[known:], ended=ended)
        for run in scheduler.decide(now):
            heappush(ends, (now + run.left, run.number, run.turn, run))
    held_back = held_back_runs(runs, policy, site, idle.at)
    return ReplayOutcome(
        runs=tuple(run for run in runs if run.ended_at is not None) if held_back else tuple(runs),
        devices=len(site.devices),
        free=idle.free,
        stranded=idle.stranded,
        held_back=held_back,
    )


class _Submission:
    """Creates the run of a job at its submission, with the estimate of that time."""

    def __init__(self, jobs: Sequence[TraceJob], site: SimulatedSite, estimator: Estimator) -> None:
        self._jobs = jobs
        self._node = cache(partial(largest_node, site.devices))
        self._longest = max((job.seconds for job in jobs), default=0.0)
        self._estimator = estimator
        self._restart_cost = site.restart_cost

    def __call__(self, number: int) -> Run:
        job = self._jobs[number]
        expected = self._estimator.expect(job)
        # Without time limits in the trace, all jobs get a limit that no job reaches.
        limit = max(job.seconds, self._longest if job.limit is None else job.limit)
        return Run(
            number=number,
            job=job,
            request=request_of(
                job,
                node=self._node(job.model),
                expected=expected,
                limit=limit,
                restart_cost=self._restart_cost,
            ),
            expected_seconds=expected,
            left=job.seconds,
        )


def too_large(jobs: Iterable[TraceJob], devices: Sequence[Device]) -> TraceJob | None:
    """Return a job that these devices could not hold if all were free; None if all jobs fit."""
    pool = DevicePool(devices, ())
    # One job of every size: a trace has few sizes, and thousands of jobs of each.
    sizes = {(job.devices, job.model, job.share, job.gang): job for job in jobs}
    for job in sizes.values():
        node = largest_node(devices, job.model)
        if not pool.could_fit(whole(request_of(job, node=node, expected=0.0, limit=0.0))):
            return job
    return None


def _check_sizes(jobs: Iterable[TraceJob], site: SimulatedSite) -> None:
    job = too_large(jobs, site.devices)
    if job is not None:
        raise InvalidInput(
            f"{job.id} asks for {_lacking(job, site.devices)}.",
            accepted="Give more or larger nodes, or select smaller jobs.",
            field="nodes",
        )


def _lacking(job: TraceJob, devices: Sequence[Device]) -> str:
    """Describe the devices that a job asks for and these nodes lack."""
    if job.share is not None:
        return "a larger share of a device than any of these nodes has"
    of_model = f" of {job.model}" if job.model else ""
    in_members = f" in {plural(job.gang.members, 'member')}" if job.gang else ""
    requested = f"{plural(job.devices, 'device')}{of_model}{in_members}"
    if job.devices > sum(job.model in (None, each.model) for each in devices):
        return f"{requested}, and these nodes have {len(devices)}"
    return f"{requested}, which do not fit on these nodes: {layout_rule(job)}"
