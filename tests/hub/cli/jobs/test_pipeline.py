"""``carrel pipeline`` against a real HTTP server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ....fake_service import FakeService
from ...notebooks import notebook
from ..invocation import Carrel, carrel, service

__all__ = ["carrel", "service"]

PREFIX = "/services/carrel/api/v1"

STUDY = """
[jobs.train]
notebook = "train.ipynb"
after = "prepare:any"
labels = { study = "one" }

[jobs.prepare]
command = "python prepare.py"
workdir = "."
"""


def expect(service: FakeService, run_time: dict[str, object] | None, *, together: str = "") -> None:
    """Let the service expect this of each job, which would start now."""
    cost = {"device_seconds": 600.0, "low": 540.0, "high": 720.0, "most": 3600.0, "known": True}
    answer = {
        "group": "cs101",
        "devices": 1,
        "seconds": 3600,
        "device_seconds": 3600.0,
        "sentence": "It would start now.",
        "starts_now": True,
        "run_time": None if run_time is None else {**run_time, "runs": 1, "sentence": "?"},
        "cost": None if run_time is None else {**cost, "sentence": "?"},
        "together": together,
    }
    service.extra["POST", f"{PREFIX}/requests/dry-run"] = lambda handler: handler.say(200, answer)


@pytest.fixture(autouse=True)
def study(carrel: Carrel) -> None:
    Path("study.toml").write_text(STUDY)


def test_jobs_are_submitted_in_order_and_with_the_ids_of_those_before(
    service: FakeService, carrel: Carrel
) -> None:
    done = carrel("pipeline", "study.toml", "--json")
    assert done.exit_code == 0, done.output
    first, second = service.called("POST", "requests")
    made = [json.loads(line)["id"] for line in done.stdout.splitlines()]
    assert (first["command"], first.get("after")) == (["python", "prepare.py"], [])
    assert second["after"] == [f"{made[0]}:any"]
    assert second["labels"]["study"] == "one"
    assert first["labels"]["pipeline"] == second["labels"]["pipeline"]
    assert [each["labels"]["pipeline-job"] for each in (first, second)] == ["prepare", "train"]


def test_a_dry_run_shows_the_order_and_submits_nothing(
    service: FakeService, carrel: Carrel
) -> None:
    expect(service, {"seconds": 600.0, "low": 540.0, "high": 720.0, "basis": "own_program"})
    done = carrel("pipeline", "study.toml", "--dry-run")
    assert done.stdout.splitlines() == [
        "prepare",
        "train  after prepare:any",
        "End: in about 20 min (18 min to 24 min), if its jobs do not wait for each other's "
        "devices.",
        "Critical path: prepare → train",
        "Likely charge: 0.3 device-hours (0.3 to 0.4), at most 2.0 device-hours.",
    ]
    assert service.called("POST", "requests") == []


def test_a_dry_run_as_json_counts_jobs_that_may_take_their_whole_limit(
    service: FakeService, carrel: Carrel
) -> None:
    expect(service, None)
    found = json.loads(carrel("pipeline", "study.toml", "--dry-run", "--json").stdout)
    assert found["unknown"] == 2
    assert found["ends_in"]["high"] == 7200
    assert found["most"] == 7200


def test_a_dry_run_needs_no_service_for_the_order(service: FakeService, carrel: Carrel) -> None:
    service.extra["GET", f"{PREFIX}/me"] = lambda handler: handler.say(
        503, {"code": "unavailable", "message": "The service restarts."}
    )
    done = carrel("pipeline", "study.toml", "--dry-run")
    assert done.exit_code == 0
    assert done.stdout.splitlines() == ["prepare", "train  after prepare:any"]
    assert "What to expect of them is not known: Carrel at " in done.stderr


def test_nothing_is_submitted_if_a_notebook_is_none(service: FakeService, carrel: Carrel) -> None:
    Path("train.ipynb").write_text("[]")
    done = carrel("pipeline", "study.toml")
    assert done.exit_code > 1
    assert "train.ipynb" in done.stderr
    assert service.called("POST", "requests") == []


def test_show_names_the_jobs_before_and_after(service: FakeService, carrel: Carrel) -> None:
    service.add("j-2", state="running", after=["j-1"])
    jobs = [
        {"id": "j-1", "name": "prepare", "state": "succeeded", "owner": "ada"},
        {"id": "j-2", "name": "train", "state": "running", "owner": "ada"},
        {"id": "j-3", "name": "report", "state": "queued", "owner": "ada"},
    ]
    links = [
        {"first": "j-1", "then": "j-2", "kind": "ok"},
        {"first": "j-2", "then": "j-3", "kind": "any"},
    ]
    assert "After:           j-1\n" in carrel("show", "j-2").stdout, "of an older service"
    answer = json.dumps({"jobs": jobs, "links": links}).encode()
    service.extra["GET", "/services/carrel/api/v1/requests/j-2/pipeline"] = lambda handler: (
        handler.answer(200, answer, "application/json")
    )
    lines = carrel("show", "j-2").stdout.splitlines()
    assert "After:           j-1 (prepare, succeeded)" in lines
    assert "Then:            j-3 (report, queued, however it ends)" in lines


def test_a_dry_run_of_a_sweep_shows_its_end_its_critical_path_and_its_charge(
    service: FakeService, carrel: Carrel
) -> None:
    path = "cells 1 to 2 → cell 3 (4 times)"
    known = {"seconds": 600.0, "low": 540.0, "high": 720.0, "basis": "own_program"}
    told = "Trained as one: 2 of 2 trials, by one run of the notebook."
    expect(service, known | {"critical_path": path}, together=told)
    Path("train.ipynb").write_text(notebook("lr + 1"))
    done = carrel("sweep", "train.ipynb", "--grid", "lr=0.1,0.2", "--devices", "1", "--dry-run")
    assert done.stdout.splitlines() == [
        "Start: It would start now.",
        "Run time: ?",
        f"Critical path: {path}",
        "End: in about 10 min (9 min to 12 min).",
        "Charge: ?",
        told,
    ]
    assert service.called("POST", "requests") == []
    shown = carrel("sweep", "train.ipynb", "--grid", "lr=0.1,0.2", "--dry-run", "--json")
    assert json.loads(shown.stdout)["run_time"]["critical_path"] == path
