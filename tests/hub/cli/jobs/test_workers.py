"""``carrel workers`` and ``carrel split``: what they read, print and refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from carrel.hub.client import Client
from carrel.hub.schemas import PoolOut

from ....fake_service import FakeService
from ...web.fakes import device
from ..invocation import Carrel, carrel, service

__all__ = ["carrel", "service"]


def ended(service: FakeService, id_: str, devices: int, seconds: float, **fields: Any) -> None:
    """Add a job that succeeded on so many devices of one node."""
    lease = {
        "id": f"{id_}.1", "epoch": 1, "state": "released", "granted_at": 2000.0,
        "devices": [
            {
                "id": f"SIM-{index}", "node": "here", "index": index, "model": "Simulated GPU",
                "memory_bytes": 2**30, "simulated": True, "state": "free",
            }
            for index in range(devices)
        ],
    }  # fmt: skip  # grouped by meaning
    known = {"state": "succeeded", "ended": True, "notebook": "train.ipynb", "devices": devices}
    service.add(id_, ended_at=2000.0 + seconds, lease=lease, **known | fields)


@pytest.fixture
def history(service: FakeService, monkeypatch: pytest.MonkeyPatch) -> None:
    """Add jobs, on a site whose node has eight devices."""
    devices = [device(number, node="here") for number in range(8)]
    pool = PoolOut(devices=devices, free=8, total=8, waiting=0, simulated=True)
    monkeypatch.setattr(Client, "pool", lambda _: pool)
    for number, (devices, seconds) in enumerate([(1, 1200), (2, 700), (4, 450)]):
        ended(service, f"j-aaaaaaa{number}", devices, seconds)
    ended(service, "j-bbbbbbbb", 8, 9000, parameters={"lr": 0.1})
    ended(service, "j-cccccccc", 8, 9000, state="failed")


@pytest.mark.usefixtures("history")
def test_runs_of_the_same_work_are_compared(carrel: Carrel) -> None:
    found = carrel("workers", "j-aaaaaaa0", "--most", "8")
    assert found.exit_code == 0
    table, _, sentences = found.stdout.partition("\n\n")
    assert [line.split()[0] for line in table.splitlines()] == ["DEVICES", "1", "2", "4", "8"]
    assert sentences.splitlines()[0].startswith("Use 4 devices: 1.6 times faster than 2")
    assert table.splitlines()[3].endswith("recommended")
    assert table.splitlines()[4].endswith("expected")


@pytest.mark.usefixtures("history")
def test_named_jobs_are_compared_whatever_they_ran(carrel: Carrel) -> None:
    found = carrel("workers", "j-aaaaaaa0", "j-bbbbbbbb", "--json")
    answer = json.loads(found.stdout)
    assert answer["samples"] == 2
    assert answer["recommended"] == 1
    assert answer["unit"] == "run"


@pytest.mark.usefixtures("history")
def test_a_job_with_one_number_of_devices_says_what_is_missing(carrel: Carrel) -> None:
    found = carrel("workers", "j-bbbbbbbb")
    assert found.exit_code == 1
    assert "1 run of it succeeded, on not more than one number of devices" in found.stderr


def test_samples_are_read_from_stdin(carrel: Carrel) -> None:
    text = "workers,seconds\n1,0.4\n2,0.22\n"
    found = carrel("workers", "--samples", "-", "--json", input=text)
    assert json.loads(found.stdout)["recommended"] == 2


WRONG = {
    "nothing": ((), "", 2, "Name jobs, or a file with --samples"),
    "both": (("j-aaaaaaa0", "--samples", "-"), "", 2, "and not both"),
    "empty": (("--samples", "-"), "", 1, "Missing columns: workers, seconds."),
    "a batch of jobs": (("j-aaaaaaa0", "--total-batch", "8"), "", 2, "--total-batch is for"),
    "not a number": (("--samples", "-"), "workers,seconds\n1,nan\n", 1, "Line 2: 'nan'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_compared_is_refused(carrel: Carrel, case: str) -> None:
    arguments, text, status, reason = WRONG[case]
    found = carrel("workers", *arguments, input=text)
    assert found.exit_code == status
    assert reason in found.stderr


def test_a_file_that_is_not_text_is_refused(carrel: Carrel) -> None:
    Path("steps.csv").write_bytes(b"\xff\xfe\x00")
    found = carrel("workers", "--samples", "steps.csv")
    assert found.exit_code == 1
    assert "steps.csv is not a CSV file: it is not UTF-8." in found.stderr


LAYERS = "name,seconds,result_bytes\nembed,1,10\nblock,2,10\nblock,2,10\nhead,1,0\n"


def test_a_split_is_printed_by_stage(carrel: Carrel) -> None:
    arguments = ("-", "--devices", "2", "--link", "100", "--micro-batches", "4")
    found = carrel("split", *arguments, input=LAYERS)
    assert found.stdout.splitlines() == [
        "STAGE  OPERATIONS          TIME   LINK",
        "    1  1 embed to 2 block   3 s  0.1 s",
        "    2  3 block to 4 head    3 s",
        "",
        "4 micro-batches take 15.1 s, 1.6 times as fast as on one device.",
    ]
    answer = json.loads(carrel("split", *arguments, "--json", input=LAYERS).stdout)
    assert (answer["cuts"], answer["one_device_seconds"]) == ([2], 24)


def test_the_links_must_match_the_devices(carrel: Carrel) -> None:
    arguments = ("-", "--devices", "4", "--link", "100", "--link", "10")
    found = carrel("split", *arguments, input=LAYERS)
    assert found.exit_code == 2
    assert "4 devices have 3 links, and --link is given 2 times." in found.stderr
