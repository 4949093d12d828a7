"""Real traces for benchmarks: read through CARREL_SHARED, and laid out as the goldens are."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from math import ceil
from pathlib import Path

from carrel.hub.simulation.formats import FORMATS
from carrel.hub.simulation.jobs import Job, Trace
from carrel.hub.simulation.traces import Selection, first_moment, last_moment, read_trace

NODE = 8
"""Devices of a node in all of them."""
MOST_LOAD = 0.8


def shared(name: str) -> Path:
    """A file of the folder that CARREL_SHARED names; without it there is nothing to measure."""
    path = Path(os.environ.get("CARREL_SHARED", "")) / "data" / name
    if not path.is_file():
        sys.exit(f"CARREL_SHARED has to name a folder with data/{name}.")
    return path


def philly() -> Trace:
    return read_trace(shared("philly_82k_jobs.csv.gz"), FORMATS["philly"])


def week_of_philly() -> Trace:
    """S1: a week of the largest virtual cluster, on 6 nodes."""
    selection = Selection(
        where={"cluster": "6214e9"},
        since=first_moment("2017-10-01"),
        until=last_moment("2017-10-07 23:59"),
    )
    return read_trace(shared("philly_82k_jobs.csv.gz"), FORMATS["philly"], selection)


def helios() -> Trace:
    return read_trace(shared("helios_venus_2vc_sept2020.csv.gz"), FORMATS["helios"])


def nodes_of(jobs: Iterable[Job]) -> dict[str, int]:
    """For each tenant the fewest nodes that carry its load, and that hold its widest job."""
    by_tenant: dict[str, list[Job]] = {}
    for job in jobs:
        by_tenant.setdefault(job.tenant, []).append(job)
    return {tenant: _nodes(inside) for tenant, inside in by_tenant.items()}


def _nodes(jobs: list[Job]) -> int:
    first = min(job.submitted_at for job in jobs)
    last = max(job.submitted_at + job.seconds for job in jobs)
    load = sum(job.seconds * job.devices for job in jobs) / (last - first)
    return max(ceil(load / MOST_LOAD / NODE), ceil(max(job.devices for job in jobs) / NODE))
