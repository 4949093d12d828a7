"""A site on which one group borrows from another, with jobs that save before preemption."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path

from carrel.hub.config.settings import Settings
from carrel.hub.config.state_folder import StateFolder

from .support import Installation, eventually, installation

BORROWER, OWNER = "student1", "student2"
"""A teacher of lab and of cs101; the borrower is in cs101 too."""
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
"""Runs until the file ``enough`` exists, or from the checkpoint straight to the end."""


@contextmanager
def lending_site(folder: Path, *, grace: float) -> Iterator[Installation]:
    """Four devices; cs101 and lab have a guaranteed quota of two each and a max quota of four."""
    state = StateFolder.at(folder)
    state.create()
    Settings(preemption_grace_seconds=grace).save(state)
    with installation(state.root, "--simulated-devices", "4") as made:
        where = ("--state", str(made.state))
        limits = ("--max-devices", "4", "--max-devices-per-user", "4", "--guaranteed", "2")
        made.cli("group", "set", "cs101", *limits, *where)
        made.cli("group", "add", "lab", *limits, "--member", BORROWER, *where)
        yield made


def submit(site: Installation, user: str, group: str, devices: int, *more: str) -> str:
    """Submit one of the jobs above; in the home, unless ``more`` names another working folder."""
    what = ("--devices", str(devices), "--group", group, "--time", "10m")
    where = () if "--workdir" in more else ("--workdir", ".")
    words = ("run", "--json", *what, *where, *more, "--", "python", "-c", WORK)
    return str(json.loads(site.cli(*words, user=user).stdout)["id"])


def borrow_all(site: Installation, *more: str) -> list[str]:
    """Four opportunistic jobs of lab, all running."""
    what = ("--priority", "opportunistic", *more)
    borrowed = [submit(site, BORROWER, "lab", 1, *what) for _ in range(4)]
    for each in borrowed:
        site.wait_for(each, "running", user=BORROWER)
    eventually(lambda: all(begun(site, each) for each in borrowed), "all have begun")
    return borrowed


def asked_back(site: Installation, requests: list[str]) -> dict[str, str]:
    """Return the two jobs with a preemption notice, with their warnings."""

    def warned() -> dict[str, str] | None:
        found = [site.request(each, user=BORROWER) for each in requests]
        told = {each["id"]: each["warning"]["message"] for each in found if each["warning"]}
        return told if len(told) == 2 else None

    return eventually(warned, "two are asked back")


def leases_by_device(site: Installation) -> dict[str, list[tuple[float, float]]]:
    """Return the intervals in which each device was used, in order. All leases must have ended."""
    query = (
        "SELECT device_id, granted_at, leases.released_at FROM leases"
        " JOIN lease_devices ON lease_id = leases.id ORDER BY granted_at"
    )
    found = defaultdict(list)
    uri = f"{(site.state / 'carrel.db').as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, timeout=20)) as database:
        for device, granted_at, released_at in database.execute(query):
            found[device].append((granted_at, released_at))
    return found


def overlaps(spans: list[tuple[float, float]]) -> list[tuple[tuple[float, float], ...]]:
    return [(one, other) for one, other in pairwise(sorted(spans)) if other[0] < one[1]]


def begun(site: Installation, request: str, user: str = BORROWER) -> bool:
    """Whether this job would save when told to."""
    return "begun" in site.api("GET", f"/requests/{request}/log", user=user).text
