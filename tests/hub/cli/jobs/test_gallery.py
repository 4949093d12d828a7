"""``carrel gallery`` against a real HTTP server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ....fake_service import PREFIX, FakeService
from ..invocation import Carrel, carrel, service

__all__ = ["carrel", "service"]

AT = f"{PREFIX}/gallery"
ITEM = {
    "id": "g-7k2m4qpz",
    "owner": "ada",
    "audience": "*",
    "title": "Train",
    "kind": "notebook",
    "what": "train.ipynb",
    "version": 2,
    "created_at": 1000.0,
    "updated_at": 1000.0,
}
PARAMETER = {"name": "lr", "type": "number", "default": "0.1", "value": 0.05, "given": True}
SHOWN = {
    "version": 2,
    "published_at": 1000.0,
    "description": "About it.",
    "request": "j-1",
    "succeeded": True,
    "jobs": [
        {
            "name": "train.ipynb",
            "notebook": "train.ipynb",
            "seconds": 600,
            "parameters": [PARAMETER],
            "left_out": ["It ran in a folder of uploaded files, which are not copied."],
        }
    ],
}
DETAIL = {**ITEM, "shown": SHOWN, "versions": {"2": 1000.0, "1": 900.0}}


@pytest.fixture
def sent(service: FakeService) -> list[tuple[str, Any]]:
    """The calls, as (verb and path, body)."""
    calls: list[tuple[str, Any]] = []

    def answer(handler: Any) -> None:
        path = handler.path.removeprefix(PREFIX).partition("?")[0]
        calls.append((f"{handler.command} {path}", json.loads(handler.raw or "null")))
        if path.endswith("/run"):
            handler.say(201, {"requests": [service.add("j-2")]})
        elif (handler.command, path) == ("GET", "/gallery"):
            handler.say(200, {"items": [ITEM]})
        else:
            handler.say(200, DETAIL)

    for verb, path in (
        ("GET", AT),
        ("POST", AT),
        ("GET", f"{AT}/g-7k2m4qpz"),
        ("POST", f"{AT}/g-7k2m4qpz/run"),
        ("POST", f"{AT}/g-7k2m4qpz/fork"),
        ("POST", f"{AT}/g-7k2m4qpz/withdraw"),
    ):
        service.extra[verb, path] = answer
    return calls


def test_list_show_run_fork_and_withdraw(carrel: Carrel, sent: list[tuple[str, Any]]) -> None:
    assert "notebook: train.ipynb" in carrel("gallery", "list", "train").output
    shown = carrel("gallery", "show", "g-7k2m4qpz").output
    assert "run j-1: succeeded" in shown
    assert "lr = 0.05 (number)" in shown
    assert "uploaded files" in shown
    done = carrel("gallery", "run", "g-7k2m4qpz", "--version", "1", "-p", "lr", "0.5")
    assert "Submitted j-2" in done.output
    carrel("gallery", "fork", "g-7k2m4qpz", "--everyone")
    assert carrel("gallery", "withdraw", "g-7k2m4qpz").output == "Withdrew g-7k2m4qpz.\n"
    bodies = dict(sent)
    assert bodies["POST /gallery/g-7k2m4qpz/run"]["parameters"] == {"lr": 0.5}
    assert bodies["POST /gallery/g-7k2m4qpz/fork"]["audience"] == "*"


def test_publish_a_job_or_a_file(carrel: Carrel, sent: list[tuple[str, Any]]) -> None:
    done = carrel("gallery", "publish", "j-1", "--title", "Train", "--outputs", "--for", "cs101")
    assert "Published g-7k2m4qpz, version 2, for all users." in done.output
    ((_, body),) = sent
    assert (body["request"], body["outputs"], body["audience"]) == ("j-1", True, "cs101")
    done = carrel("gallery", "publish", "train.ipynb", "--title", "New", "--group", "cs101")
    assert done.exit_code == 0, done.output
    assert sent[-1][1]["job"]["notebook"]["name"] == "train.ipynb"
    both = carrel("gallery", "publish", "j-1", "--for", "cs101", "--everyone")
    assert (both.exit_code, "--for and --everyone" in both.output) == (2, True)
