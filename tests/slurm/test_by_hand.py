"""Jobs of Carrel that an administrator has renamed, held or requeued by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.spawners.slurm.client import SlurmClient
from carrel.spawners.slurm.job_states import JobMark, SlurmJob, by_lease

from ..fake_service import eventually
from .cluster import SlurmCluster

pytestmark = pytest.mark.slurm
MARK = JobMark(installation="c0ffee", lease="j-a.1")


def test_a_job_that_is_changed_by_hand_is_found_and_its_wait_is_told(
    slurm: SlurmCluster, tmp_path: Path
) -> None:
    client = SlurmClient(str(slurm.conf), fresh_seconds=0)
    number = client.submit(
        [
            *(f"--job-name={MARK.name}", f"--comment={MARK.comment()}", "--no-requeue"),
            *("--output=/dev/null", "--chdir=/"),
        ],
        "#!/bin/sh\nexec sleep 600\n",
    )

    def job() -> SlurmJob:
        return by_lease(client.jobs(), "c0ffee")["j-a.1"]

    eventually(lambda: not job().is_pending)
    slurm.run("scontrol", "update", f"JobId={number}", "JobName=train")
    assert job().id == number
    # Carrel submits with --no-requeue: only someone who takes that back can requeue it.
    assert slurm.call("scontrol", "requeue", str(number)).returncode != 0
    slurm.run("scontrol", "update", f"JobId={number}", "Requeue=1")
    slurm.run("scontrol", "requeuehold", str(number))
    eventually(
        lambda: "scontrol release" in job().status().waiting or "holds" in job().status().waiting
    )
    assert not job().has_ended
    slurm.run("scancel", str(number))
    eventually(lambda: job().has_ended)
