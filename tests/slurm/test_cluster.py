"""The cluster of the tests itself: both nodes run jobs on their simulated devices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ..fake_service import eventually
from .cluster import NODES, SlurmCluster

pytestmark = pytest.mark.slurm


@pytest.mark.parametrize("node", NODES)
def test_a_job_sees_its_devices_and_is_accounted(
    slurm: SlurmCluster, node: str, tmp_path: Path
) -> None:
    seen = tmp_path / "devices"
    job = slurm.submit(
        "--gres=gpu:sim:2", f"--nodelist={node}", script=f"echo $CUDA_VISIBLE_DEVICES > {seen}"
    )
    eventually(lambda: seen.exists() and seen.read_text() == "0,1\n")

    def accounted() -> bool:
        (found,) = json.loads(slurm.run("sacct", "--json", "-j", str(job)))["jobs"] or [None]
        return found is not None and found["state"]["current"] == "COMPLETED"

    eventually(accounted)
