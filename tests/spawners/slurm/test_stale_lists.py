"""A list of jobs is used again for a moment: it may be older than what a runner has reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.hub.interfaces.backend_settings import BackendSettings, SlurmOptions
from carrel.hub.records.leases import Handle
from carrel.spawners.slurm.backend import SlurmBackend
from carrel.spawners.slurm.client import SlurmClient
from carrel.spawners.slurm.job_states import JobMark, SlurmJob

LEASE = "j-a.1"
RUNNER = Handle(pid=4711, started_at=1000.0)


class ListedClient(SlurmClient):
    """Lists one job, in one state after the other."""

    def __init__(self, *states: str) -> None:
        self._states = list(states)
        super().__init__(fresh_seconds=3600)

    def _list_jobs(self) -> tuple[SlurmJob, ...]:
        mark = JobMark(installation="c0ffee", lease=LEASE)
        found = {"job_id": 7, "job_state": self._states.pop(0), "start_time": 900}
        return (SlurmJob.from_squeue(found | {"name": mark.name, "comment": mark.comment()}),)


def backend(folder: Path, *states: str) -> SlurmBackend:
    made = SlurmBackend(
        BackendSettings(state=folder, service_url="", installation="c0ffee", slurm=SlurmOptions())
    )
    made.client = ListedClient(*states)
    return made


@pytest.mark.parametrize("second", ["RUNNING", "PENDING"])
def test_an_attempt_with_a_runner_waits_only_by_a_list_that_is_newer(
    tmp_path: Path, second: str
) -> None:
    engine = backend(tmp_path, "PENDING", second)
    assert engine.status({LEASE: None})[LEASE].waiting
    assert bool(engine.status({LEASE: RUNNER})[LEASE].waiting) is (second == "PENDING")


def test_an_attempt_without_a_runner_needs_no_second_list(tmp_path: Path) -> None:
    engine = backend(tmp_path, "PENDING")
    status = engine.status({LEASE: None})[LEASE]
    assert engine.status({LEASE: status.handle})[LEASE] == status
