"""What the lists of Slurm say: jobs, their ends and their waits, and nodes with their devices."""

from __future__ import annotations

from dataclasses import replace

import pytest

from carrel.hub.interfaces.backend import ProcessState
from carrel.hub.interfaces.backend_settings import SlurmOptions
from carrel.hub.records.requests import CauseCode
from carrel.spawners.common.gang_processes import gang_status
from carrel.spawners.slurm.devices import pool_devices
from carrel.spawners.slurm.job_states import JobMark, SlurmJob, by_lease
from carrel.spawners.slurm.nodes import Gres, SlurmNode, hostnames, parse_gres
from carrel.spawners.slurm.times import seconds_of

OURS = "c0ffee"


def job(number: int = 1, *, lease: str = "j-a.1", **found: object) -> SlurmJob:
    """Return a job as ``squeue --json`` of Slurm 22.05 shows it."""
    mark = JobMark(installation=OURS, lease=lease, devices=("node1-gpu0",))
    return SlurmJob.from_squeue(
        {
            "job_id": number,
            "job_state": "RUNNING",
            "name": mark.name,
            "comment": mark.comment(),
            "user_name": "carrel",
            "nodes": "node1",
            "submit_time": 100,
            "start_time": 110,
            "end_time": 0,
            "gres_detail": ["gpu:sim:1(IDX:1)"],
        }
        | found
    )


def test_a_job_is_found_by_its_comment_or_by_its_name() -> None:
    renamed = job(1, lease="j-a.1", name="train")
    overwritten = job(2, lease="j-b.1", comment="project=42")
    foreign = job(3, name="carrel", comment="")
    assert by_lease((renamed, overwritten, foreign), OURS) == {
        "j-a.1": renamed,
        "j-b.1": overwritten,
    }
    assert by_lease((renamed,), "another") == {}


def test_of_several_jobs_of_a_lease_the_live_one_counts() -> None:
    ended, live = job(2, job_state="CANCELLED"), job(1)
    assert by_lease((live, ended), OURS) == {"j-a.1": live}


def test_the_names_in_a_list_of_hosts() -> None:
    assert list(hostnames("gpu[1-2,08],login")) == ["gpu1", "gpu2", "gpu08", "login"]
    assert list(hostnames("r[1-2]n[09-10]")) == ["r1n09", "r1n10", "r2n09", "r2n10"]
    assert list(hostnames("")) == []


def test_the_devices_of_a_job_on_two_nodes_are_those_of_each() -> None:
    both = job(nodes="node[1-2]", gres_detail=["gpu:sim:1(IDX:1)", "gpu:sim:2(IDX:0-1)"])
    assert list(both.devices_by_node()) == [
        ("node1", Gres(type="sim", count=1)),
        ("node2", Gres(type="sim", count=2)),
    ]


def test_a_pending_job_says_why_it_waits_and_when_slurm_expects_its_start() -> None:
    status = job(
        7, job_state="PENDING", nodes="", start_time=500, state_reason="QOSMaxGRESPerUser"
    ).status()
    assert status.life is ProcessState.ALIVE
    assert (status.started_at, status.expected_at) == (None, 500)
    assert status.waiting == (
        "It waits in Slurm's queue as job 7: the limit of devices for each user of its QOS is "
        "reached (QOSMaxGRESPerUser)."
    )


def test_an_unknown_reason_is_quoted() -> None:
    waiting = job(job_state="PENDING", state_reason="FancyNewReason").status().waiting
    assert waiting.endswith("Slurm gives the reason (FancyNewReason).")


@pytest.mark.parametrize(
    ("state", "exit_code", "expected"),
    [("COMPLETED", 0, 0), ("FAILED", 3 << 8, 3), ("FAILED", 9, -9), ("NODE_FAIL", 0, None)],
)
def test_the_exit_status_of_an_ended_job(state: str, exit_code: int, expected: int | None) -> None:
    status = job(job_state=state, exit_code=exit_code, end_time=200).status()
    assert (status.life, status.exit_status) == (ProcessState.DEAD, expected)
    assert (status.started_at, status.ended_at) == (110, 200)


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ("OUT_OF_MEMORY", CauseCode.OUT_OF_MEMORY),
        ("TIMEOUT", CauseCode.TIME_LIMIT),
        ("CANCELLED", CauseCode.CANCELLED),
    ],
)
def test_the_cause_of_an_end_that_slurm_decided(state: str, code: CauseCode) -> None:
    status = job(9, job_state=state, end_time=200).status()
    assert status.cause is not None
    assert status.cause.code is code
    assert f"(state {state} of job 9)" in status.cause.message


def test_a_job_of_a_failed_node_is_lost_and_not_failed() -> None:
    status = job(9, job_state="NODE_FAIL", end_time=200).status()
    assert status.cause is None
    assert status.lost == "Its node failed (Slurm's state NODE_FAIL of job 9)."


def test_a_job_that_was_cancelled_while_it_waited_has_no_charged_time() -> None:
    status = job(job_state="CANCELLED", nodes="", start_time=150, end_time=150).status()
    assert (status.started_at, status.ended_at) == (None, 0)


@pytest.mark.parametrize(
    ("state", "ends", "seen"),
    [
        # As the end that Slurm will tell: no earlier than this whole second.
        ("RUNNING", 500, 199),
        ("RUNNING", 0, 199),
        # Its last processes end, and its node may be away for long.
        ("COMPLETING", 150, 150),
        ("PENDING", 500, None),
    ],
)
def test_a_job_is_seen_when_it_was_listed_and_not_after_its_end(
    state: str, ends: int, seen: float | None
) -> None:
    listed = replace(job(job_state=state, end_time=ends), listed_at=199.9)
    assert listed.status().seen_at == seen


def test_a_gang_is_seen_when_its_last_member_was() -> None:
    lists = [("RUNNING", 120.0), ("COMPLETED", 0.0), ("RUNNING", 130.5)]
    members = [
        replace(job(job_state=state, end_time=900), listed_at=at).status() for state, at in lists
    ]
    assert gang_status(members).seen_at == 130


def test_a_job_that_only_the_accounting_takes_for_running_was_lost_in_a_crash() -> None:
    times = {"submission": 100, "start": 110, "end": 0}
    found = {"job_id": 9, "state": {"current": "RUNNING"}, "nodes": "node1", "time": times}
    status = SlurmJob.from_sacct(found).status()
    assert (status.life, status.started_at, status.ended_at) == (ProcessState.DEAD, 110, None)
    assert status.lost == (
        "Slurm's controller crashed before it had saved that it runs (job 9 of Slurm)."
    )


def test_a_completing_job_may_have_processes() -> None:
    assert job(job_state="COMPLETING").status().life is ProcessState.ALIVE
    assert job(job_state=["FAILED", "COMPLETING"]).status().life is ProcessState.ALIVE


def test_jobs_of_a_later_slurm_have_numbers_in_objects() -> None:
    found = job(
        job_state=["FAILED"],
        start_time={"set": True, "infinite": False, "number": 110},
        end_time={"set": True, "infinite": False, "number": 200},
        exit_code={
            "status": ["SIGNALED"],
            "return_code": {"set": True, "number": 0},
            "signal": {"id": {"set": True, "number": 9}, "name": "KILL"},
        },
    )
    assert (found.started_at, found.ended_at) == (110, 200)
    assert found.status().exit_status == -9


def test_devices_are_read_by_type_in_the_order_of_their_indices() -> None:
    assert parse_gres("gpu:a100:4(S:0-1),gpu:v100:2,nic:1") == (
        Gres(type="a100", count=4),
        Gres(type="v100", count=2),
    )
    assert parse_gres("gpu:3") == (Gres(type="", count=3),)
    assert parse_gres("(null)") == ()


def node(**found: object) -> SlurmNode:
    return SlurmNode.from_json(
        {
            "name": "node1",
            "state": "mixed",
            "gres": "gpu:sim:3",
            "gres_used": "gpu:sim:0(IDX:N/A)",
            "partitions": ["main"],
        }
        | found
    )


def health(*nodes: SlurmNode, jobs: tuple[SlurmJob, ...] = (), partition: str = "") -> list[str]:
    options = SlurmOptions(partition=partition, simulated=("sim",))
    devices = pool_devices(nodes, jobs, options, OURS)
    return [f"{device.id} {device.health}" for device in devices]


def test_every_index_of_a_node_is_a_device() -> None:
    assert health(node()) == ["node1-gpu0 ok", "node1-gpu1 ok", "node1-gpu2 ok"]
    (first, *_) = pool_devices((node(),), (), SlurmOptions(simulated=("sim",)), OURS)
    assert (first.model, first.simulated, first.node) == ("sim", True, "node1")


def test_devices_of_jobs_from_outside_are_busy_and_never_those_of_a_lease() -> None:
    # Slurm gave index 1 to our job, whose lease names device 0, and 0 and 2 to others.
    used = node(gres_used="gpu:sim:3(IDX:0-2)")
    assert health(used, jobs=(job(),)) == ["node1-gpu0 ok", "node1-gpu1 busy", "node1-gpu2 busy"]
    assert health(node(gres_used="gpu:sim:1(IDX:1)"), jobs=(job(),))[1:] == [
        "node1-gpu1 ok",
        "node1-gpu2 ok",
    ]


def test_a_drained_node_has_no_failed_devices_so_that_what_runs_there_goes_on() -> None:
    drained = node(state="idle", state_flags=["DRAIN"], reason="new fan")
    assert drained.why_not == "node1 is drained in Slurm (new fan)."
    assert health(drained, jobs=(job(),))[:2] == ["node1-gpu0 ok", "node1-gpu1 ok"]


def test_a_partition_bounds_the_pool() -> None:
    assert health(node(), partition="other") == []


def test_durations_of_slurm() -> None:
    assert [seconds_of(text) for text in ("00:00:11", "1-02:03:04", "02:03.500", "")] == [
        11.0,
        93784.0,
        123.5,
        0.0,
    ]
