"""Shell lines of the site that run before each session and job on a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.hub.records.requests import CauseCode
from carrel.spawners.slurm.batch_script import batch_script
from carrel.spawners.slurm.client import SlurmClient
from carrel.spawners.slurm.job_states import SlurmJob

from ..fake_service import eventually
from .cluster import SlurmCluster

pytestmark = pytest.mark.slurm
PROLOGUE = """
module() { export LOADED="$LOADED $2"; }
module load cuda/12.4
module load "a b"
"""


def ended(cluster: SlurmCluster, folder: Path, prologue: str) -> SlurmJob:
    """Return the ended job of a command that writes what the prologue has set into a file."""
    client = SlurmClient(str(cluster.conf), fresh_seconds=0)
    command = ("/bin/sh", "-c", f'echo "$KEPT$LOADED" > {folder}/seen')
    number = client.submit(
        [f"--output={folder}/log", "--chdir=/"],
        batch_script(command, {"KEPT": "it's"}, cluster.options(prologue=prologue)),
    )

    def job() -> SlurmJob:
        return next(job for job in client.jobs() if job.id == number)

    eventually(lambda: job().has_ended)
    return job()


def test_what_it_sets_is_there_for_the_job(slurm: SlurmCluster, tmp_path: Path) -> None:
    assert ended(slurm, tmp_path, PROLOGUE).status().exit_status == 0
    assert (tmp_path / "seen").read_text() == "it's cuda/12.4 a b\n"


def test_a_line_that_fails_ends_the_job_before_its_command(
    slurm: SlurmCluster, tmp_path: Path
) -> None:
    cause = ended(slurm, tmp_path, "module_of_no_site load cuda\necho never").status().cause
    assert cause is not None
    assert cause.code is CauseCode.START_FAILED
    assert "prologue below [slurm]" in cause.message
    assert not (tmp_path / "seen").exists()
    log = (tmp_path / "log").read_text()
    assert "module_of_no_site" in log
    assert "never" not in log
    assert log.endswith("carrel: the prologue below [slurm] in carrel.toml failed\n")
