"""Real traces for benchmarks: read through CARREL_SHARED, on sites laid out as the goldens are."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from math import ceil
from pathlib import Path

from carrel.hub.simulation.policies.policy import SimulatedSite
from carrel.hub.simulation.workload.formats import FORMATS
from carrel.hub.simulation.workload.jobs import Trace, TraceJob
from carrel.hub.simulation.workload.nodes import ONE_POOL, one_pool
from carrel.hub.simulation.workload.quota_file import unlimited_group
from carrel.hub.simulation.workload.reader import Selection, first_moment, last_moment, read_trace

from ..shared_data import shared_path

NODE = 8
"""Devices of a node in all of them."""
MOST_LOAD = 0.8
RESTART_COST = 60.0
"""Seconds that a job does again after it was stopped."""
WEEK = Selection(
    where={"cluster": "6214e9"},
    since=first_moment("2017-10-01"),
    until=last_moment("2017-10-07 23:59"),
)
"""S1: a week of the largest virtual cluster of Philly."""
WEEK_NODES = 6


def shared_file(name: str) -> Path:
    """Where a trace lies, or would lie."""
    return shared_path("data") / name


def shared(name: str) -> Path:
    """The same; without it there is nothing to measure."""
    path = shared_file(name)
    if not path.is_file():
        sys.exit(f"CARREL_SHARED has to name a folder with data/{name}.")
    return path


@cache
def philly() -> Trace:
    return read_trace(shared("philly_82k_jobs.csv.gz"), FORMATS["philly"])


@cache
def week_of_philly() -> Trace:
    return read_trace(shared("philly_82k_jobs.csv.gz"), FORMATS["philly"], WEEK)


@cache
def helios() -> Trace:
    return read_trace(shared("helios_venus_2vc_sept2020.csv.gz"), FORMATS["helios"])


def week_site() -> SimulatedSite:
    return SimulatedSite(devices=one_pool(WEEK_NODES, NODE).pool(ONE_POOL))


def philly_site(trace: Trace) -> SimulatedSite:
    """One pool of all nodes, in which each virtual cluster is guaranteed its own."""
    nodes = nodes_of(trace.jobs)
    devices = one_pool(sum(nodes.values()), NODE).pool(ONE_POOL)
    groups = tuple(
        replace(unlimited_group(tenant, len(devices)), guaranteed=count * NODE)
        for tenant, count in nodes.items()
    )
    return SimulatedSite(devices=devices, groups=groups, restart_cost=RESTART_COST)


def nodes_of(jobs: Iterable[TraceJob]) -> dict[str, int]:
    """For each tenant the fewest nodes that carry its load, and that hold its widest job."""
    by_tenant: dict[str, list[TraceJob]] = {}
    for job in jobs:
        by_tenant.setdefault(job.tenant, []).append(job)
    return {tenant: _nodes(inside) for tenant, inside in by_tenant.items()}


def _nodes(jobs: list[TraceJob]) -> int:
    first = min(job.submitted_at for job in jobs)
    last = max(job.submitted_at + job.seconds for job in jobs)
    load = sum(job.seconds * job.devices for job in jobs) / (last - first)
    return max(ceil(load / MOST_LOAD / NODE), ceil(max(job.devices for job in jobs) / NODE))
