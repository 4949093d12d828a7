"""A group asks back what another borrows: notice, save, stop, and the work goes on later."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from carrel.hub.config import Settings, StateFolder

from .support import Installation, eventually, installation

GRACE = 4.0
WORK = """
import os, pathlib, signal, time, carrel
mark = pathlib.Path(os.environ["CARREL_REQUEST"] + ".checkpoint")
if mark.exists():
    raise SystemExit(0)
def save(number, frame):
    mark.write_text(carrel.notice().message)
    carrel.saved()
signal.signal(signal.SIGUSR1, save)
print("begun", flush=True)
while not pathlib.Path("enough").exists():
    time.sleep(0.1)
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    state = StateFolder.at(tmp_path_factory.mktemp("reclaim") / "state")
    state.create()
    Settings(preemption_grace_seconds=GRACE).save(state)
    with installation(state.root, "--simulated-devices", "4") as made:

        def group(*words: str) -> None:
            made.cli("group", *words, "--state", str(made.state))

        limits = ("--max-devices", "4", "--max-devices-per-user", "4", "--guaranteed", "2")
        group("set", "cs101", *limits)
        group("add", "lab", *limits, "--member", "student1")
        yield made


def submit(site: Installation, user: str, group: str, devices: int, *more: str) -> str:
    what = ("--devices", str(devices), "--group", group, "--time", "10m", "--workdir", ".")
    words = ("run", "--json", *what, *more, "--", "python", "-c", WORK)
    return str(json.loads(site.cli(*words, user=user).stdout)["id"])


def warned(site: Installation, requests: list[str]) -> list[dict[str, Any]]:
    found = [site.request(each, user="student1") for each in requests]
    return [each for each in found if each["warning"]]


def test_what_was_borrowed_is_asked_back_saved_and_goes_on_later(site: Installation) -> None:
    home: Path = site.state / "homes" / "student1"
    borrowed = [submit(site, "student1", "lab", 1, "--priority", "opportunistic") for _ in range(4)]
    for each in borrowed:
        site.wait_for(each, "running", user="student1")
    eventually(lambda: all(_begun(site, each) for each in borrowed), "all have begun")

    own = submit(site, "student2", "cs101", 2)
    noticed = eventually(lambda: len(w := warned(site, borrowed)) == 2 and w, "two are asked back")
    assert all("cs101 asks back" in each["warning"]["message"] for each in noticed)
    asked = [each["id"] for each in noticed]
    shown = site.cli("show", asked[0], user="student1").stdout
    assert "cs101 asks back" in shown
    # Killed in the middle of it: what was agreed stands in the store.
    site.kill("service")
    site.wait_for(own, "running", user="student2", within=60)
    for each in asked:
        assert (home / f"{each}.checkpoint").exists()
        assert site.request(each, user="student1")["state"] == "queued"

    (site.state / "homes" / "student2" / "enough").touch()
    site.wait_for(own, "succeeded", user="student2")
    for each in asked:
        site.wait_for(each, "succeeded", user="student1", within=60)
    (home / "enough").touch()
    for each in borrowed:
        ended = site.wait_for(each, "succeeded", user="student1")
        assert ended["lease"]["epoch"] == (2 if each in asked else 1)


def _begun(site: Installation, request: str) -> bool:
    return "begun" in site.cli("logs", request, user="student1", check=False).stdout
