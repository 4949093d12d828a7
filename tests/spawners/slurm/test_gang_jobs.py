"""The one job of a gang: its components, its script, and how its members end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from carrel.hub.attempts.spec import member_folder
from carrel.hub.interfaces.backend import LaunchOrder, ProcessState
from carrel.hub.interfaces.backend_settings import BackendSettings, SlurmOptions
from carrel.hub.records.requests import CauseCode, JobSpec
from carrel.hub.scheduling.model.snapshot import Device
from carrel.spawners.slurm.gang_jobs import (
    EXIT,
    components,
    gang_options,
    gang_script,
    member_status,
)
from carrel.spawners.slurm.job_states import PROLOGUE_FAILED, JobMark, SlurmJob, by_lease

from ...gang_orders import gang_orders

OURS = "c0ffee"
SLURM = SlurmOptions(cpus=2, memory=2**30, partition="main")


def devices(node: str, *numbers: int) -> tuple[Device, ...]:
    return tuple(
        Device(
            id=f"{node}-gpu{n}", node=node, index=n, model="a100", memory_bytes=0, driver="slurm"
        )
        for n in numbers
    )


def orders(folder: Path, *wanted: tuple[Device, ...]) -> list[LaunchOrder]:
    """Return the orders of members with these devices, by rank."""
    one = LaunchOrder(
        lease_id="j-a.1",
        request_id="j-a",
        epoch=1,
        owner="student1",
        devices=(),
        job=JobSpec(notebook_name="", command=("true",)),
        seconds=60,
        token="secret",
        folder=folder / "1",
        input_path=folder / "in.ipynb",
        home=folder,
    )
    members = gang_orders(one, len(wanted))
    return [replace(each, devices=own) for each, own in zip(members, wanted, strict=True)]


def options(folder: Path, *wanted: tuple[Device, ...]) -> list[list[str]]:
    """Return the options of each component that say where it runs."""
    made = orders(folder, *wanted)
    parts = components(made, SLURM)
    mark = JobMark(installation=OURS, lease="j-a.1")
    text = "\n".join(gang_options(mark, parts, made[0], SLURM))
    shown = ("--nodes=", "--ntasks=", "--mem=", "--nodelist=", "--gres=")
    return [
        [option for option in part.splitlines() if option.startswith(shown)]
        for part in text.split("\n:\n")
    ]


def test_nodes_of_one_kind_are_one_component(tmp_path: Path) -> None:
    assert options(tmp_path, devices("n1", 0, 1), devices("n2", 0, 1)) == [
        ["--nodes=2", "--ntasks=2", "--mem=1048576K", "--nodelist=n1,n2", "--gres=gpu:a100:2"]
    ]


def test_nodes_with_more_members_or_devices_are_another_component(tmp_path: Path) -> None:
    assert options(tmp_path, devices("n1", 0), devices("n1", 1), devices("n2", 0), ()) == [
        ["--nodes=1", "--ntasks=2", "--mem=2097152K", "--nodelist=n1", "--gres=gpu:a100:2"],
        ["--nodes=1", "--ntasks=1", "--mem=1048576K", "--nodelist=n2", "--gres=gpu:a100:1"],
        # A member without devices or node: Slurm chooses.
        ["--nodes=1", "--ntasks=1", "--mem=1048576K"],
    ]


def test_the_script_starts_each_member_on_its_node_and_shows_no_token(tmp_path: Path) -> None:
    made = orders(tmp_path, devices("n1", 0), devices("n1", 1), devices("n2", 0))
    script = gang_script(
        components(made, SLURM), BackendSettings(state=tmp_path, service_url=""), SLURM
    )
    starts = [line for line in script.splitlines() if line.startswith("member /")]
    assert [line.split()[2:5] for line in starts] == [
        ["--het-group=0", "--job-name=j-a.1.m0", "--nodelist=n1"],
        ["--het-group=0", "--job-name=j-a.1.m1", "--nodelist=n1"],
        ["--het-group=1", "--job-name=j-a.1.m2", "--nodelist=n2"],
    ]
    assert "secret" not in script


def part(number: int, state: str, node: str, members: dict[int, str], log: Path) -> SlurmJob:
    """Return a component of job 7 as ``squeue --json`` of Slurm 22.05 shows it."""
    mark = JobMark(installation=OURS, lease="j-a.1", devices=(f"{node}-gpu0",), members=members)
    return SlurmJob.from_squeue(
        {
            "job_id": 7 + number,
            "het_job_id": 7,
            "het_job_offset": number,
            "job_state": state,
            "name": mark.name,
            "comment": mark.comment(),
            "nodes": node,
            "submit_time": 100,
            "start_time": 110,
            "end_time": 200 + number,
            "standard_output": str(log),
        }
    )


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The log of member 0, whose folder exists."""
    for rank in (0, 1):
        member_folder(tmp_path / "1", rank).mkdir()
    return tmp_path / "1" / "log.txt"


def both(first: str, second: str, log: Path) -> SlurmJob:
    listed = (part(1, second, "n2", {1: "n2"}, log), part(0, first, "n1", {0: "n1"}, log))
    return by_lease(listed, OURS)["j-a.1"]


def test_a_job_with_components_is_one_job(log: Path) -> None:
    job = both("RUNNING", "RUNNING", log)
    assert (job.id, job.ids, job.is_gang) == (7, (7, 8), True)
    assert job.mark is not None
    assert job.mark.devices == ("n1-gpu0", "n2-gpu0")
    assert job.mark.members == {0: "n1", 1: "n2"}


def test_it_lives_until_all_components_have_ended(log: Path) -> None:
    assert not both("COMPLETED", "COMPLETING", log).has_ended
    ended = both("COMPLETED", "COMPLETED", log)
    assert (ended.has_ended, ended.status().ended_at) == (True, 201)


def test_a_component_whose_node_failed_ends_its_members_and_is_the_reason(log: Path) -> None:
    job = both("RUNNING", "NODE_FAIL", log)
    assert member_status(job, 0).life is ProcessState.ALIVE
    lost = member_status(job, 1)
    assert (lost.life, lost.exit_status) == (ProcessState.DEAD, None)
    assert lost.lost == "Its node failed (Slurm's state NODE_FAIL of job 8)."
    whole = both("CANCELLED", "NODE_FAIL", log).status()
    assert whole.lost == "Its node failed (Slurm's state NODE_FAIL of job 7)."


def test_a_member_has_ended_when_its_step_has(log: Path) -> None:
    job = both("RUNNING", "RUNNING", log)
    assert member_status(job, 1).life is ProcessState.ALIVE
    note = member_folder(log.parent, 1) / EXIT
    note.write_text("")
    assert member_status(job, 1).life is ProcessState.ALIVE
    note.write_text("137\n")
    ended = member_status(job, 1)
    assert (ended.life, ended.exit_status, ended.cause) == (ProcessState.DEAD, -9, None)
    assert member_status(job, 0).life is ProcessState.ALIVE
    note.write_text(f"{PROLOGUE_FAILED}\n")
    cause = member_status(job, 1).cause
    assert cause is not None
    assert cause.code is CauseCode.START_FAILED


def test_a_pending_gang_waits_as_a_whole(log: Path) -> None:
    job = both("PENDING", "PENDING", log)
    assert member_status(job, 0) == member_status(job, 1) == job.status()
    assert job.status().waiting.startswith("It waits in Slurm's queue as job 7: ")
