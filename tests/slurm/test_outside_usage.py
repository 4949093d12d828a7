"""What jobs from outside Carrel have used, on a real cluster and from made lines."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from carrel.hub.interfaces.backend_settings import BackendSettings
from carrel.spawners.slurm.job_states import JobMark
from carrel.spawners.slurm.outside_usage import SlurmUsage, device_count, parse_job

from ..fake_service import eventually
from .cluster import SlurmCluster

OURS = "c0ffee"


@pytest.mark.slurm
def test_jobs_of_others_are_summed_within_the_span(slurm: SlurmCluster, tmp_path: Path) -> None:
    settings = BackendSettings(
        state=tmp_path, service_url="", installation=OURS, slurm=slurm.options()
    )
    began = time.time()
    mark = JobMark(installation=OURS, lease="j-a.1")
    ours = slurm.submit(f"--job-name={mark.name}", "--gres=gpu:sim:1", script="sleep 600")
    theirs = slurm.submit("--job-name=a|b", "--gres=gpu:sim:2", script="sleep 600")
    without = slurm.submit(script="sleep 600")
    reader = SlurmUsage(settings)
    eventually(lambda: reader.outside(began - 1, time.time()) != ())
    (use,) = reader.outside(began - 1, time.time() + 600)
    assert (use.user, use.jobs) == ("root", 1)
    assert 0 < use.device_seconds <= 2 * (time.time() - began + 1)
    assert reader.outside(began - 7200, began - 3600) == ()
    slurm.run("scancel", str(ours), str(theirs), str(without))


def test_devices_are_counted_once() -> None:
    assert device_count("billing=2,cpu=2,gres/gpu:a100=2,gres/gpu=2,mem=4G") == 2
    assert device_count("cpu=2,gres/gpu:a100=2,gres/gpu:v100=1") == 3
    assert device_count("cpu=2,mem=4G") == 0


def test_lines_that_are_no_job_with_devices_are_left_out() -> None:
    start, end = "2026-11-01T10:00:00", "2026-11-01T11:00:00"
    fields = ["anna", "physics", start, end, "gres/gpu=1", "a name", "a comment"]
    job = parse_job("\x1f".join(fields))
    assert job is not None
    assert job.ended_at is not None
    assert (job.user, job.ended_at - job.started_at, job.mark) == ("anna", 3600, None)
    running = parse_job("\x1f".join([*fields[:3], "Unknown", *fields[4:]]))
    assert running is not None
    assert running.ended_at is None
    assert parse_job("\x1f".join([*fields[:2], "Unknown", "Unknown", *fields[4:]])) is None
    assert parse_job("\x1f".join([*fields[:4], "cpu=1", *fields[5:]])) is None
    assert parse_job("second line of a comment") is None
