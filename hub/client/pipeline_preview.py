"""What a pipeline would cost and how long it would take, before it is submitted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..errors import CarrelError
from ..schemas.programs.bodies import DryRunOut
from . import job_builder
from .pipeline import job_fields
from .pipeline_file import PipelineJob
from .sync_client import Client

_LABEL: Final = "preview"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A typical value, with bounds between which 9 of 10 are; of a time limit, 0 and the limit."""

    low: float
    typical: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPreview:
    """What is expected of one job.

    Attributes:
        seconds: its run time.
        known: whether earlier jobs tell the run time; otherwise its time limit is used.
        starts_in: seconds from now until its devices would be free, if it were submitted alone;
            None if that is not known.
        charge: in device-seconds.
        most: the charge for its whole time limit, in device-seconds.
    """

    name: str
    after: Sequence[str]
    seconds: Span
    known: bool
    starts_in: float | None
    charge: Span
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelinePreview:
    """What is expected of a pipeline, if its jobs do not wait for each other's devices.

    Attributes:
        ends_in: seconds from now until all jobs have ended; None if the start of a job is unknown.
        critical: names of the jobs that determine the end, in their order.
    """

    jobs: Sequence[JobPreview]
    ends_in: Span | None
    critical: Sequence[str]

    @property
    def charge(self) -> Span:
        """The charge of all jobs, in device-seconds."""
        charges = [job.charge for job in self.jobs]
        return Span(
            low=sum(each.low for each in charges),
            typical=sum(each.typical for each in charges),
            high=sum(each.high for each in charges),
        )

    @property
    def most(self) -> float:
        return sum(job.most for job in self.jobs)

    @property
    def unknown(self) -> int:
        """Number of jobs whose time limit is used as their run time."""
        return sum(not job.known for job in self.jobs)


def preview_pipeline(
    client: Client, jobs: Sequence[PipelineJob], *, group: str, home: Path | None, now: float
) -> PipelinePreview:
    """Ask the service for each job of a pipeline what it would do with it; submit nothing.

    Args:
        now: in seconds since the epoch.

    Raises:
        CarrelError: the service would refuse a job.
    """
    found = []
    for job in jobs:
        fields = job_fields(job, group, _LABEL, home)
        try:
            answer = client.dry_run(job_builder.job(fields, maker="pipeline"))
        except CarrelError as error:
            error.message = f"{job.name}: {error.message}"
            raise
        found.append(job_preview(job.name, [name for name, _ in job.after], answer, now))
    return pipeline_preview(found)


def job_preview(name: str, after: Sequence[str], answer: DryRunOut, now: float) -> JobPreview:
    """Return what the service expects of a job that comes after others."""
    run_time, cost = answer.run_time, answer.cost
    limit, most = float(answer.seconds), answer.device_seconds
    known = run_time is not None and run_time.basis is not None
    starts_in = 0.0 if answer.starts_now else None
    if answer.expected_at is not None:
        starts_in = max(0.0, answer.expected_at - now)
    return JobPreview(
        name=name,
        after=after,
        seconds=Span(low=run_time.low, typical=run_time.seconds, high=run_time.high)
        if run_time is not None and known
        else Span(low=0.0, typical=limit, high=limit),
        known=known,
        starts_in=starts_in,
        charge=Span(low=cost.low, typical=cost.device_seconds, high=cost.high)
        if cost is not None
        else Span(low=0.0, typical=most, high=most),
        most=most,
    )


def pipeline_preview(jobs: Sequence[JobPreview]) -> PipelinePreview:
    """Return the longest path through jobs that come after those that they wait for.

    A job starts when those before it have ended, not earlier than its devices are free today.
    """
    if not jobs or any(job.starts_in is None for job in jobs):
        return PipelinePreview(jobs=jobs, ends_in=None, critical=())
    low = _ends(jobs, {job.name: job.seconds.low for job in jobs})
    typical = _ends(jobs, {job.name: job.seconds.typical for job in jobs})
    high = _ends(jobs, {job.name: job.seconds.high for job in jobs})
    span = Span(low=max(low.values()), typical=max(typical.values()), high=max(high.values()))
    critical = list(_critical(jobs, typical))[::-1]
    return PipelinePreview(jobs=jobs, ends_in=span, critical=critical)


def _ends(jobs: Sequence[JobPreview], seconds: Mapping[str, float]) -> dict[str, float]:
    ends: dict[str, float] = {}
    for job in jobs:
        starts = [job.starts_in or 0.0, *(ends[name] for name in job.after)]
        ends[job.name] = max(starts) + seconds[job.name]
    return ends


def _critical(jobs: Sequence[JobPreview], ends: Mapping[str, float]) -> Iterator[str]:
    """Yield the jobs on the longest path, the last one first."""
    by_name = {job.name: job for job in jobs}
    name: str | None = max(ends, key=lambda each: ends[each])
    while name is not None:
        yield name
        job = by_name[name]
        before = max(job.after, key=lambda each: ends[each], default=None)
        # A job that waits for free devices longer than for other jobs begins the path.
        waits = before is not None and ends[before] >= (job.starts_in or 0.0)
        name = before if waits else None
