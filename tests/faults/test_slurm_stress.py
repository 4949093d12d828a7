"""Jobs on a Slurm cluster while its daemons and the service are killed with -9.

Every job ends once, none runs beside itself, nothing is left in Slurm's queue, and what the ledger
charges is what Slurm has accounted, to the second.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from carrel.hub.scheduling.model.states import State
from carrel.spawners.slurm.client import FRESH_SECONDS

from ..e2e.support import Installation, eventually
from ..slurm.cluster import NODES, SlurmCluster
from .audit import Books, audit
from .stress import each_ran_alone, every_second_is_charged, kill, work
from .support import (
    STUDENTS,
    all_ended,
    campaign,
    drawn,
    executions,
    free,
    healthy,
    insist,
    patient_installation,
)

pytestmark = pytest.mark.slurm

PARTS = ("service", "slurmctld", *NODES)
SECOND = 1.0
"""Slurm accounts whole seconds."""
LATE = SECOND + FRESH_SECONDS
"""By how much the last sign of life may be later than the end that Slurm has accounted."""


@pytest.fixture
def site(slurm: SlurmCluster, tmp_path: Path) -> Iterator[Installation]:
    state = tmp_path / "state"
    slurm.site_file(state)
    with patient_installation(state, "--engine", "slurm") as made:
        yield made


@pytest.mark.parametrize(
    ("seed", "jobs", "kills"),
    [campaign(11, 20, 4), campaign(12, 200, 20, slow=True)],
)
def test_every_job_ends_once_whatever_is_killed(
    site: Installation, slurm: SlurmCluster, seed: int, jobs: int, kills: int
) -> None:
    chance, targets = drawn(site, seed, kills, PARTS)
    known = 0
    for number, target in enumerate(targets, 1):
        while known < jobs * number // kills:
            insist(site, STUDENTS[known % len(STUDENTS)], work(known, chance))
            known += 1
        time.sleep(chance.uniform(0, 2))  # the moment is the point, nothing is waited for
        if target == "service":
            eventually(partial(kill, site, target), "the service is killed", within=120)
        else:
            slurm.kill(target)
            time.sleep(chance.uniform(0, 2))
            slurm.start_daemon(target)
    healthy(site)

    def ended() -> Books | None:
        # As an administrator does: a controller that has lost its newest jobs uses their ids
        # again, which drains a node on which such a job still runs.
        slurm.resume()
        return all_ended(site)

    books = eventually(ended, "every job ends", within=120 + 3 * jobs)
    assert len(books.requests) == jobs
    _each_ended_as_it_should(site, books)
    each_ran_alone(site, books)
    every_second_is_charged(site, books)
    eventually(lambda: free(site) == len(site.ready["devices"]), "the whole pool is free")
    assert slurm.run("squeue", "-h").strip() == ""
    _ledger_is_what_slurm_accounted(audit(site.state, precision=LATE), slurm)


def _each_ended_as_it_should(site: Installation, books: Books) -> None:
    """A job succeeds, unless its attempt was lost and it was not to be tried again."""
    done = executions(site, "finished")
    for request in books.requests:
        if request.state is State.SUCCEEDED:
            assert done[request.id][-1] == f"{request.id}.{request.epoch}"
        else:
            assert State.LOST in request.path, request


def _ledger_is_what_slurm_accounted(books: Books, slurm: SlurmCluster) -> None:
    """Check every lease whose start and end slurmctld had saved before it was killed.

    It keeps no end of a job that it has lost, and a later one of a job whose end it has lost. A job
    whose start it has lost is pending again, and cancelled: it never ran for Slurm, although its
    signs of life were charged.
    """
    answer = json.loads(slurm.run("sacct", "--json", "--duplicates", "--starttime=now-1days"))
    spans: dict[str, list[tuple[float, float]]] = {}
    for job in answer["jobs"]:
        if not job["name"].startswith("carrel-"):
            continue  # of another test on this cluster
        lease = job["name"].split("-", 2)[2]
        spans.setdefault(lease, []).append((job["time"]["start"], job["time"]["end"]))
    known, wrong = 0, []
    for lease in books.leases:
        found = spans.get(lease.id, [])
        if not found or not all(0 < end <= lease.released_at for _, end in found):
            continue
        if lease.ran and any(start == end for start, end in found):
            continue
        known += 1
        entries = [each for each in books.entries if each.lease == lease.id and not each.credit]
        charged = sum(each.ends_at - each.starts_at for each in entries)
        accounted = sum(end - start for start, end in found if start)
        if abs(charged - accounted) > SECOND:
            wrong.append(f"{lease}: {found}, charged {charged} s")
    assert wrong == [], "\n".join(wrong)
    assert known >= len(books.leases) / 2, known
