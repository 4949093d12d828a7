"""What a job on a cluster measures of its devices, and what the service reads of it."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

import pytest

from carrel.hub.interfaces.devices import DriverDevice
from carrel.hub.interfaces.session_meter import JOB_GROUP, JOB_VARIABLE
from carrel.hub.records.utilization import DeviceReading
from carrel.spawners.runner.attempt.job_meter import start_job_meter
from carrel.spawners.slurm import job_meter
from carrel.spawners.slurm.job_states import JobMark, SlurmJob

BUSY = DriverDevice(id="GPU-a", index=0, model="a100", utilization=90, used_bytes=5)
IDLE = DriverDevice(id="GPU-b", index=1, model="a100", utilization=0, used_bytes=0)
OTHER = DriverDevice(id="GPU-c", index=2, model="a100", mean_utilization=40.0, used_bytes=7)
DEVICES = (BUSY, IDLE, OTHER)


def job(folder: Path, devices: tuple[str, ...], members: dict[int, str]) -> SlurmJob:
    return SlurmJob(
        id=7,
        state="RUNNING",
        node="node1",
        submitted_at=1,
        started_at=2,
        ended_at=0,
        log=str(folder / "log.txt"),
        mark=JobMark(installation="c0ffee", lease="j-a.1", devices=devices, members=members),
    )


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"CUDA_VISIBLE_DEVICES": "0,1"}, [BUSY, IDLE]),
        ({"CUDA_VISIBLE_DEVICES": "GPU-c"}, [OTHER]),
        ({"CUDA_VISIBLE_DEVICES": "", "ROCR_VISIBLE_DEVICES": "1"}, [IDLE]),
        ({}, []),
    ],
)
def test_the_devices_that_slurm_gave_are_measured_even_if_they_are_idle(
    environment: dict[str, str], expected: list[DriverDevice]
) -> None:
    assert job_meter.own_devices(environment, DEVICES) == expected


def test_the_service_reads_the_devices_of_all_members_while_they_are_fresh(
    tmp_path: Path,
) -> None:
    first, second = tmp_path / "1", tmp_path / "1.m1"
    for folder, visible in ((first, "0"), (second, "1,2")):
        folder.mkdir()
        visible_now = {"CUDA_VISIBLE_DEVICES": visible}
        job_meter.measure(folder, visible_now, lambda: DEVICES, lambda: 1000.0)
    gang = job(first, ("n1-gpu0", "n2-gpu0", "n2-gpu1"), {0: "n1", 1: "n2"})
    assert job_meter.read_devices(gang, 1010.0) == {
        "n1-gpu0": DeviceReading(percent=90, used_bytes=5),
        "n2-gpu0": DeviceReading(percent=0, used_bytes=0),
        "n2-gpu1": DeviceReading(percent=40.0, used_bytes=7),
    }
    alone = job(first, ("n1-gpu0",), {})
    assert set(job_meter.read_devices(alone, 1010.0)) == {"n1-gpu0"}
    assert job_meter.read_devices(gang, 1000.0 + 2 * job_meter.VALID_SECONDS) == {}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"at": "x", "devices": []}', '{"at": 1}'])
def test_a_file_that_is_not_of_the_meter_is_left_out(tmp_path: Path, text: str) -> None:
    (tmp_path / job_meter.FILE).write_text(text)
    assert job_meter.read_devices(job(tmp_path, ("n1-gpu0",), {}), 1.0) == {}


def test_the_runner_starts_the_meter_that_its_engine_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Path] = []
    (entry,) = entry_points(group=JOB_GROUP, name="slurm")
    assert entry.load() is job_meter.start
    monkeypatch.setattr(job_meter, "start", started.append)
    start_job_meter(tmp_path)
    monkeypatch.setenv(JOB_VARIABLE, "slurm")
    start_job_meter(tmp_path)
    assert started == [tmp_path]
