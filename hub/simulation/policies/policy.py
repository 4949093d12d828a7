"""Policies: an order with its rules, the simulated site, and the baselines of the literature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from ...scheduling.model.snapshot import Device, Group
from ..workload.calendar import NO_DATES, Calendar
from ..workload.job_run import Run
from .ordered_queue import Key, OrderedQueue, Rules


class Scheduler(Protocol):
    """Receives events, and decides once for every moment."""

    def submit(self, run: Run, now: float) -> None: ...

    def end(self, run: Run, now: float) -> None:
        """Handle the end of a run, which still has its placement."""

    def decide(self, now: float) -> Sequence[Run]:
        """Start and stop runs; return those that started."""

    def next_change(self) -> float:
        """Return when it needs to decide without an event; infinity for never."""

    @property
    def waiting(self) -> int:
        """Number of queued runs."""

    @property
    def free(self) -> float:
        """Number of free devices."""


LAS_THRESHOLD = 3200.0
"""Device-seconds after which a job goes to the second queue, as in the simulator of Tiresias."""
_TOLERANCE = 0.01
"""Device-seconds: tolerance for sums of floating-point numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedSite:
    """The site that a policy schedules.

    Attributes:
        devices: devices of the pool.
        groups: the quota tree; its leaves are the tenants.
        restart_cost: seconds of work that a job repeats after it was stopped.
        calendar: terms, which are budget periods, and reservations.
    """

    devices: Sequence[Device]
    groups: Sequence[Group] = ()
    restart_cost: float = 0.0
    calendar: Calendar = NO_DATES


class Schedules(Protocol):
    """A policy: it creates the scheduler of one replay."""

    @property
    def name(self) -> str: ...

    @property
    def source(self) -> str:
        """Its source, for reports."""

    def scheduler(self, site: SimulatedSite) -> Scheduler: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy(Rules):
    """A policy that is an order.

    Attributes:
        source: its source, for reports.
    """

    name: str
    source: str = ""

    def scheduler(self, site: SimulatedSite) -> Scheduler:
        return OrderedQueue(self, site.devices, restart_cost=site.restart_cost)


def by_age(run: Run, _now: float) -> Key:
    return (run.job.submitted_at,)


def by_length(run: Run, _now: float) -> Key:
    return (run.job.seconds,)


def by_remaining(run: Run, now: float) -> Key:
    return (run.remaining(now),)


def by_predicted_service(run: Run, _now: float) -> Key:
    """Order by expected device-seconds."""
    return (run.expected_seconds * run.job.size,)


def by_queue(run: Run, now: float) -> Key:
    """Order by queue, the second one for jobs past the threshold, then first come, first served."""
    return (float(_attained_enough(run, now)), run.job.submitted_at)


def leaves_first_queue(run: Run, now: float) -> float | None:
    if _attained_enough(run, now):
        return None
    return now + (LAS_THRESHOLD - run.attained(now)) / run.job.size


def _attained_enough(run: Run, now: float) -> bool:
    return run.attained(now) > LAS_THRESHOLD - _TOLERANCE


BASELINES: Mapping[str, Policy] = MappingProxyType(
    {
        each.name: each
        for each in (
            Policy(
                name="fifo",
                order=by_age,
                source="First come, first served; no job passes the next one.",
            ),
            Policy(
                name="greedy",
                order=by_age,
                passes=True,
                source="First come, first served; a job that fits may pass.",
            ),
            Policy(
                name="sjf",
                order=by_length,
                source="Shortest job first; the durations are known, no job passes the next one.",
            ),
            Policy(
                name="srtf",
                order=by_remaining,
                passes=True,
                preempts=True,
                source="Shortest remaining time first; the durations are known.",
            ),
            Policy(
                name="las",
                order=by_queue,
                passes=True,
                preempts=True,
                changes=leaves_first_queue,
                source="Gu et al., Tiresias: A GPU Cluster Manager for Distributed Deep Learning, "
                f"NSDI 2019: two queues, threshold {LAS_THRESHOLD:,.0f} GPU-seconds.",
            ),
            Policy(
                name="qssf",
                order=by_predicted_service,
                source="Hu et al., Characterization and Prediction of Deep Learning Workloads in "
                "Large-Scale GPU Datacenters, SC 2021: least predicted GPU time first.",
            ),
        )
    }
)
