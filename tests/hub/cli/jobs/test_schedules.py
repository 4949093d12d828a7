"""``carrel schedule`` against a real HTTP server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ....fake_service import PREFIX, FakeService
from ..invocation import Carrel, carrel, service

__all__ = ["carrel", "service"]

SCHEDULE = {
    "id": "c-7k2m4qpz",
    "group": "cs101",
    "what": "train.ipynb",
    "devices": 1,
    "cron": "0 6 * * *",
    "zone": "UTC",
    "state": "active",
    "created_at": 1000.0,
    "next_at": 1_767_600_000.0,
    "upcoming": [1_767_600_000.0, 1_767_686_400.0],
}
REFUSED = {**SCHEDULE, "last_due": 1_767_513_600.0, "last_error": "No such group.", "missed": 2}
AT = f"{PREFIX}/schedules"


@pytest.fixture
def sent(service: FakeService) -> list[tuple[str, Any]]:
    """The calls of schedules, as (verb and path, body)."""
    calls: list[tuple[str, Any]] = []

    def answer(handler: Any) -> None:
        body = json.loads(handler.raw) if handler.raw else None
        calls.append((f"{handler.command} {handler.path.removeprefix(PREFIX)}", body))
        paused = {**SCHEDULE, "state": "paused", "next_at": None}
        changed = paused if body and body.get("state") == "paused" else SCHEDULE
        listed = {"schedules": [REFUSED]} if handler.command == "GET" else changed
        handler.say(200, service.add("j-1") if handler.path.endswith("/run") else listed)

    for verb, path in (
        ("POST", AT),
        ("GET", AT),
        ("POST", f"{AT}/c-7k2m4qpz/change"),
        ("POST", f"{AT}/c-7k2m4qpz/run"),
        ("DELETE", f"{AT}/c-7k2m4qpz"),
    ):
        service.extra[verb, path] = answer
    return calls


def test_add_sends_the_job_and_its_times(carrel: Carrel, sent: list[tuple[str, Any]]) -> None:
    done = carrel("schedule", "add", "train.ipynb", "--cron", "0 6 * * *", "--zone",
                  "Europe/Berlin", "-p", "lr", "0.5", "--devices", "1", "--group",
                  "cs101")  # fmt: skip  # pairs
    assert done.exit_code == 0, done.output
    ((call, body),) = sent
    assert call == "POST /schedules"
    assert body["idempotency_key"]
    assert (body["cron"], body["zone"]) == ("0 6 * * *", "Europe/Berlin")
    job = body["job"]
    assert "idempotency_key" not in job
    assert (job["group"], job["devices"], job["parameters"]) == ("cs101", 1, {"lr": 0.5})
    assert job["notebook"]["name"] == "train.ipynb"
    assert "Created the schedule c-7k2m4qpz. Its next times are 5 Jan" in done.output


def test_add_may_be_omitted(carrel: Carrel, sent: list[tuple[str, Any]]) -> None:
    done = carrel("schedule", "train.ipynb", "--cron", "0 3 * * *", "--group", "cs101")
    assert (done.exit_code, [call for call, _ in sent]) == (0, ["POST /schedules"])


def test_add_refuses_to_wait(carrel: Carrel, sent: list[tuple[str, Any]]) -> None:
    done = carrel("schedule", "add", "train.ipynb", "--cron", "* * * * *", "--wait")
    assert (done.exit_code, sent) == (2, [])
    assert "no end to wait for" in done.output


def test_list_shows_times_and_the_last_result(carrel: Carrel, sent: list[tuple[str, Any]]) -> None:
    done = carrel("schedule", "list")
    header, row = done.output.splitlines()
    assert header.split() == ["ID", "WHAT", "TIMES", "NEXT", "LAST"]
    assert "0 6 * * * UTC" in row
    assert "refused: No such group. (2 times missed)" in row
    assert json.loads(carrel("schedule", "ls", "--json").output)["id"] == "c-7k2m4qpz"


def test_pause_resume_run_and_remove(carrel: Carrel, sent: list[tuple[str, Any]]) -> None:
    assert carrel("schedule", "pause", "c-7k2m4qpz").output == "c-7k2m4qpz is paused.\n"
    assert "c-7k2m4qpz is active. Its next" in carrel("schedule", "resume", "c-7k2m4qpz").output
    assert "Submitted j-1" in carrel("schedule", "run", "c-7k2m4qpz").output
    removed = carrel("schedule", "remove", "c-7k2m4qpz", "--json").output
    assert json.loads(removed) == {"removed": "c-7k2m4qpz"}
    assert [call for call, _ in sent] == [
        "POST /schedules/c-7k2m4qpz/change",
        "POST /schedules/c-7k2m4qpz/change",
        "POST /schedules/c-7k2m4qpz/run",
        "DELETE /schedules/c-7k2m4qpz",
    ]
    assert [body and body.get("state") for _, body in sent] == ["paused", "active", None, None]
