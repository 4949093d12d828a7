"""``carrel cache`` against a fake service."""

from __future__ import annotations

import json
from typing import Any

from ...fake_service import FakeService
from .invocation import Carrel, carrel, service

__all__ = ["carrel", "service"]

PATH = "/services/carrel/api/v1/compile-cache"
ENTRY = {
    "program": "train.ipynb",
    "request": "j-7k2m4qpz",
    "group": "cs101",
    "image": "torch@sha256:ab12cd34ef567890",
    "graphs": 12,
    "size": 3 << 20,
    "used_at": 1_700_000_000.0,
}
LIMIT = 256 << 20
FULL = {"entries": [ENTRY], "size": 3 << 20, "limit": LIMIT}
EMPTY: dict[str, Any] = {"entries": [], "size": 0, "limit": LIMIT}


def test_what_is_kept_is_listed_with_the_limit(service: FakeService, carrel: Carrel) -> None:
    service.extra["GET", PATH] = lambda handler: handler.say(200, FULL)
    head, row, sum_ = carrel("cache").output.splitlines()
    assert head.split() == ["PROGRAM", "GROUP", "IMAGE", "JOB", "GRAPHS", "SIZE", "LAST", "USED"]
    assert row.split() == [
        *("train.ipynb", "cs101", "torch@ab12cd34ef56", "j-7k2m4qpz", "12", "3.0", "MiB"),
        *("14", "Nov", "2023", "22:13"),
    ]
    assert sum_ == "3.0 MiB of at most 256 MiB are kept."
    assert json.loads(carrel("cache", "--json").output) == FULL

    service.extra["GET", PATH] = lambda handler: handler.say(200, EMPTY)
    assert carrel("cache").output == "0 B of at most 256 MiB are kept.\n"
    service.extra["GET", PATH] = lambda handler: handler.say(200, {**EMPTY, "limit": 0})
    assert carrel("cache").output == "This site keeps no compiled code.\n"


def test_all_or_what_one_job_compiled_is_deleted(service: FakeService, carrel: Carrel) -> None:
    service.extra["DELETE", PATH] = lambda handler: handler.say(200, EMPTY)
    service.extra["DELETE", f"{PATH}/j-7k2m4qpz"] = lambda handler: handler.say(200, EMPTY)
    rest = "0 B of at most 256 MiB are kept.\n"
    assert carrel("cache", "--clear").output == f"Deleted what earlier jobs compiled.\n{rest}"
    done = carrel("cache", "j-7k2m4qpz", "--clear")
    assert done.output == f"Deleted what j-7k2m4qpz compiled.\n{rest}"
    assert json.loads(carrel("cache", "--clear", "--json").output) == EMPTY
    assert carrel("cache", "j-7k2m4qpz").exit_code == 2


def test_a_teacher_deletes_what_the_course_compiled(service: FakeService, carrel: Carrel) -> None:
    path = "/services/carrel/api/v1/courses/cs101/assignments/ps1/prefix"
    kept = {"notebook": "ps1.ipynb", "request": "j-1", "state": "ready", "seconds": 60.0}
    about = {"course": "cs101", "assignment": "ps1", "on": True, "devices": 1}
    saved = {"jobs": 0, "seconds": 0.0, "device_seconds": 0.0}
    answers = {
        size: {**about, **saved, "notebooks": [{**kept, "compiled_bytes": size}]}
        for size in (0, 3 << 20)
    }
    service.extra["GET", path] = lambda handler: handler.say(200, answers[3 << 20])
    deletion = ("DELETE", f"{path}/compile-cache")
    service.extra[deletion] = lambda handler: handler.say(200, answers[0])
    course = ("course", "prefix", "ps1", "--course", "cs101")
    state = "The prefix of ps1 is on, for jobs with 1 device.\nps1.ipynb: saves 1 min of each job"
    assert carrel(*course).output == f"{state}, with 3.0 MiB of compiled code\n"
    done = carrel(*course, "--clear-cache")
    assert done.output == f"Deleted the compiled code of ps1.\n{state}\n"
    refused = carrel("course", "prefix", "ps1", "on", "--clear-cache")
    assert (refused.exit_code, "neither on nor off" in refused.stderr) == (2, True)


def test_an_empty_job_is_no_job(service: FakeService, carrel: Carrel) -> None:
    """As of an unset variable: it must not delete everything."""
    done = carrel("cache", "", "--clear")
    assert done.exit_code == 2
    assert "The job is empty." in done.stderr
    assert service.called("DELETE", "compile-cache") == []
