"""``carrel pipeline`` against a real HTTP server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ....fake_service import FakeService
from ..invocation import Carrel, carrel, service

__all__ = ["carrel", "service"]

STUDY = """
[jobs.train]
notebook = "train.ipynb"
after = "prepare:any"
labels = { study = "one" }

[jobs.prepare]
command = "python prepare.py"
workdir = "."
"""


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
    done = carrel("pipeline", "study.toml", "--dry-run")
    assert done.stdout.splitlines() == ["prepare", "train  after prepare:any"]
    assert service.called("POST", "requests") == []


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
