"""What a submitted job knows of the service: nothing but what ``sbatch`` needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.spawners.slurm.client import SlurmClient

from ..fake_service import eventually
from .cluster import SlurmCluster

pytestmark = pytest.mark.slurm
OF_THE_SHELL = {"OLDPWD", "PWD", "SHLVL", "_"}
OF_SLURM = {"CUDA_VISIBLE_DEVICES", "ENVIRONMENT", "GPU_DEVICE_ORDINAL", "HOSTNAME", "TMPDIR"}


def test_a_job_gets_no_variables_of_the_service_nor_of_a_login_shell(
    slurm: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "secret")
    monkeypatch.setenv("HOME", str(tmp_path))
    # A login shell of bash, dash or ksh would read it.
    (tmp_path / ".profile").write_text("export FROM_A_LOGIN_SHELL=1\n")
    seen = tmp_path / "seen"
    SlurmClient(str(slurm.conf)).submit(
        ["--output=/dev/null", "--chdir=/"],
        f"#!/bin/sh\nenv >{seen}.new && mv {seen}.new {seen}\n",
        environment={"GIVEN": "yes"},
    )
    eventually(seen.exists)
    found = dict(line.split("=", 1) for line in seen.read_text().splitlines() if "=" in line)
    assert (found["GIVEN"], found["HOME"]) == ("yes", str(tmp_path))
    assert found["SLURM_CONF"] == str(slurm.conf)
    others = {name for name in found if not name.startswith(("SLURM", "SBATCH_"))}
    assert others <= OF_THE_SHELL | OF_SLURM | {
        *("GIVEN", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "TZ", "USER")
    }
