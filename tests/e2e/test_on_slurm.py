"""Carrel on a Slurm cluster: sessions, jobs, gangs, and the crash of each part."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from nbformat import reads, write

from ..slurm.cluster import DEVICES, NODES, SlurmCluster
from ..spawners.notebooks import notebook, printed
from .all_reduce import ALL_REDUCE, BY_GLOO
from .support import Installation, eventually, installation
from .two_students import Work, two_students_and_one_device

pytestmark = [pytest.mark.browser, pytest.mark.slurm]
USER = "student1"


@pytest.fixture
def site(slurm: SlurmCluster, tmp_path: Path) -> Iterator[Installation]:
    state = tmp_path / "state"
    slurm.site_file(state)
    # The time-outs of two_students: this machine may be busy.
    (state / "jupyterhub_config.py").write_text("c.LeaseMixin.launch_timeout = 140.0\n")
    with installation(state, "--engine", "slurm") as made:
        yield made


def taken_but_one(cluster: SlurmCluster) -> list[int]:
    """Take all devices but one for jobs from outside Carrel."""
    sizes = [DEVICES - 1, *[DEVICES] * (len(NODES) - 1)]
    return [
        cluster.submit(f"--gres=gpu:sim:{size}", f"--nodelist={node}", "--mem=100M")
        for node, size in zip(NODES, sizes, strict=True)
        if size
    ]


def free_are(site: Installation, count: int) -> None:
    """Wait until the pool knows what jobs from outside Carrel have taken."""

    def free() -> bool:
        pool = site.api("GET", "/pool", user=USER).json()["devices"]
        return [device["state"] for device in pool].count("free") == count

    eventually(free, "devices of jobs from outside Carrel are busy")


@pytest.mark.slow
def test_two_students_and_one_device_on_a_cluster(site: Installation, slurm: SlurmCluster) -> None:
    taken_but_one(slurm)
    free_are(site, 1)
    two_students_and_one_device(site, isolated=False, work=Work(), chapter="slurm-")


@pytest.mark.slow
def test_torchrun_on_two_nodes_adds_numbers_by_gloo(slurm: SlurmCluster, tmp_path: Path) -> None:
    """Where PyTorch is installed."""
    pytest.importorskip("torch")
    (tmp_path / "gloo.py").write_text(BY_GLOO)
    state = tmp_path / "state"
    slurm.site_file(state, memory="2GiB")
    with installation(state, "--engine", "slurm") as site:
        for node in NODES:
            slurm.submit(f"--gres=gpu:sim:{DEVICES - 1}", f"--nodelist={node}", "--mem=100M")
        free_are(site, len(NODES))
        sent = site.cli(
            *("run", "--nodes", "2", "--devices", "1", "--time", "5m", "--json"),
            *("--input", str(tmp_path / "gloo.py"), "--"),
            *("python", "-m", "torch.distributed.run", "gloo.py"),
            user=USER,
        )
        job = json.loads(sent.stdout)["id"]
        ended = site.wait_for(job, "succeeded", user=USER, within=200)
        assert {member["node"] for member in ended["lease"]["members"]} == set(NODES)
        for rank in range(2):
            said = site.cli("logs", job, "--member", str(rank), user=USER).stdout
            assert f"rank {rank} of 2: sum 11\n" in said


@pytest.mark.slow
def test_a_gang_over_two_nodes_and_a_controller_that_crashes(
    site: Installation, slurm: SlurmCluster, tmp_path: Path
) -> None:
    (tmp_path / "reduce.py").write_text(ALL_REDUCE)
    # One device of each node is free: the members of the gang are on both.
    for node in NODES:
        slurm.submit(f"--gres=gpu:sim:{DEVICES - 1}", f"--nodelist={node}", "--mem=100M")
    free_are(site, len(NODES))
    words = ("run", "--nodes", "2", "--devices", "1", "--time", "5m", "--json", "--input")
    command = ("sh", "-c", "echo on $SLURMD_NODENAME; exec python reduce.py")
    sent = site.cli(*words, str(tmp_path / "reduce.py"), "--", *command, user=USER)
    job = json.loads(sent.stdout)["id"]
    ended = site.wait_for(job, "succeeded", user=USER)
    assert {member["node"] for member in ended["lease"]["members"]} == set(NODES)
    said = site.cli("logs", job, user=USER).stdout
    assert "worker 0 of 2: sum 11" in said
    assert "on node" in said

    # slurmctld dies while a job runs: the job goes on, and another one waits with the reason.
    sent = site.cli(
        "run", "--workdir", ".", "--time", "5m", "--json", "--", "sleep", "20", user=USER
    )
    running = json.loads(sent.stdout)["id"]
    site.wait_for(running, "running", user=USER)
    slurm.kill("slurmctld")
    sent = site.cli(
        "run", "--workdir", ".", "--time", "5m", "--json", "--", "echo", "later", user=USER
    )
    later = json.loads(sent.stdout)["id"]
    slurm.start_daemon("slurmctld")
    # Slurm goes on with it if it had saved that it runs; else it is a second attempt.
    site.wait_for(running, "succeeded", user=USER)
    site.wait_for(later, "succeeded", user=USER)


@pytest.mark.slow
def test_a_sweep_divides_the_devices_of_its_job(site: Installation, tmp_path: Path) -> None:
    trial = (
        "import os, time, carrel; time.sleep(3)\n"
        "carrel.report('loss', x); print(os.environ['CUDA_VISIBLE_DEVICES'], pid == os.getpid())"
    )
    book = notebook("import os; pid = os.getpid()", trial, parameters="x = 0")
    book.cells[2].metadata["tags"] = ["carrel-share"]
    write(book, tmp_path / "n.ipynb")
    words = ("--grid", "x=4,3,2,1", "--devices", "1", "--parallel", "2", "--objective", "loss")
    sent = site.cli("sweep", str(tmp_path / "n.ipynb"), *words, "--time", "5m", "--json", user=USER)
    job = json.loads(sent.stdout)["id"]
    site.wait_for(job, "succeeded", user=USER)
    trials = site.api("GET", f"/requests/{job}/trials", user=USER).json()
    assert [trial["state"] for trial in trials["trials"]] == ["succeeded"] * 4
    assert trials["best"] == 4
    shown = [
        site.api("GET", f"/requests/{job}/files/{trial['notebook']}", user=USER).text
        for trial in trials["trials"]
    ]
    assert {printed(reads(text, as_version=4)) for text in shown} == {"0 False\n", "1 False\n"}
