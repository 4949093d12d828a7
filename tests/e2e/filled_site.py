"""An installation with content for every page.

student1 has a session with an idle warning, jobs in every state, compiled code, and a channel for
notifications; a device is held for student2; student3 is queued; newcomer has nothing yet, and vera
is in another group. One device is drained, one is sick. cs101 has a budget and a term, vision a
reservation next week. All pages have an announcement.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from carrel.hub.config.settings import Settings
from carrel.hub.config.state_folder import StateFolder

from ..courses.notebook_samples import source
from .support import Installation, allow_links, eventually, installation
from .widget_pages import submit, write_notebook

PARAMETERS = """\
rounds: int = 3  # how often it prints
rate = 0.1  # step size
careful = False"""
SWEPT = "lr = 0.1\ndepth = 2"
SWEEP = {
    "space": {"grid": {"lr": [1.0, 0.1, 0.001], "depth": [2, 4]}},
    "parallel": 2,
    "objective": "loss",
}
SHOWS = """\
import struct, zlib
from IPython.display import HTML, Image, display
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
rows = b"".join(b"\\0" + bytes((x, y, 160)) * 160 for x, y in zip(range(80), range(80)))
header = struct.pack(">IIBBBBB", 160, 80, 8, 2, 0, 0, 0)
display(HTML("<table><tr><th>epoch</th><th>loss</th></tr><tr><td>1</td><td>0.91</td></tr></table>"))
Image(data=b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", header)
    + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))"""
WRITES = """\
import os
with open(os.path.join(os.environ["CARREL_OUTPUT_DIR"], "result.csv"), "w") as file:
    file.write("epoch,loss\\n1,0.91\\n")
print("result.csv is written")"""
STEPS = """\
import sys, time
for step in range(41):
    sys.stderr.write(f"\\r{step}%|{'█' * (step // 10)}    | {step}/100 [00:01<00:02, 33it/s]")
    sys.stderr.flush()
    time.sleep(0.02)
time.sleep(3600)"""
FAILS = """\
def learn(rate):
    raise ValueError(f"the rate {rate} is not above 0")
learn(-1)"""
NOTIFICATIONS = """
[notifications]
services = ["jsons"]
hosts = ["hooks.example.edu"]
"""
IDLE_SECONDS = 8.0
_DEVICES = 6
_LONG = 3600.0
_ENDS = (
    ("done", "succeeded"),
    ("broken", "failed"),
    ("cut", "cancelled"),
    ("sweep", "succeeded"),
)
_JOB_SECONDS = 2 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledSite:
    """The installation, and the ids of its content."""

    site: Installation
    ids: dict[str, str]


@contextmanager
def filled_site(state: Path) -> Iterator[FilledSite]:
    folder = StateFolder.at(state)
    allow_links(state, "https://git.example.org/")
    # Held devices and warnings must outlast the tests.
    Settings(claim_seconds=_LONG, idle_countdown_seconds=_LONG).save(folder)
    with folder.site_file.open("a", encoding="utf-8") as file:
        file.write(NOTIFICATIONS)
    _compiled(folder.compile_caches / "student1")
    with installation(state, "--simulated-devices", str(_DEVICES)) as site:
        yield FilledSite(site=site, ids=_filled(site, state.parent))


def _compiled(folder: Path) -> None:
    """Write what earlier jobs of a user have compiled."""
    folder.mkdir(parents=True)
    image = f"torch@sha256:{'3f2a91c04b7d' * 5}"
    programs = (("j-7k2m4qpz", "digits.ipynb"), ("j-4c8x5w2n", "python fine_tune_the_network.py"))
    for number, (request, program) in enumerate(programs):
        header = {"request": request, "program": program, "group": "cs101", "image": image}
        first_line = json.dumps({**header, "graphs": 12}).encode()
        content = first_line + b"\n" + bytes((number + 1) * 9_000_000)
        (folder / f"{number}.cache").write_bytes(content)


def _filled(site: Installation, folder: Path) -> dict[str, str]:
    drained = _administered(site)
    session = _made(site, "POST", "/sessions/-", "student1", group="cs101", devices=1, hours=2)
    ids = {"drained": drained, "session": session["id"], **_jobs(site, folder)}
    held = {"group": "cs101", "devices": 1, "hours": 1, "claim": True}
    ids["held"] = _made(site, "POST", "/sessions/-", "student2", **held)["id"]
    for job, states in _ENDS:
        site.wait_for(ids[job], states, user="student1", within=180)
    item = {"title": "Train the sample network", "description": "With **four** rounds."}
    ids["item"] = _made(site, "POST", "/gallery", "student1", request=ids["done"], **item)["id"]
    _until(site, ids["held"], "student2", "claim_by")
    waits = _made(site, "POST", "/sessions/-", "student3", group="cs101", devices=2, hours=1)
    ids["waiting"] = waits["id"]
    _until(site, waits["id"], "student3", "wait")
    site.wait_for(ids["session"], "running", user="student1")
    _until(site, ids["running"], "student1", "progress")
    _until(site, ids["session"], "student1", "warning")
    return ids


def _administered(site: Installation) -> str:
    """Drain a device, and return it."""
    groups = {
        "university": {"max_devices": 8, "max_devices_per_user": 4},
        "cs101": {
            "parent": "university",
            "max_devices": 6,
            "max_devices_per_user": 2,
            "idle_seconds": int(IDLE_SECONDS),
            "budget": {"device_seconds": 300 * 3600, "period": "term"},
        },
        "vision": {"parent": "university", "max_devices": 2, "max_devices_per_user": 1},
    }
    for name, body in groups.items():
        _made(site, "PUT", f"/groups/{name}", "admin", **body)
    _dated(site)
    _taught(site)
    for name, group in (("newcomer", "cs101"), ("vera", "vision")):
        made = _made(site, "POST", "/people", "admin", name=name, groups=[group])
        site.passwords[name] = made["password"]
    # Nothing is sent: no feedback is released to student1.
    channel = {"address": "jsons://hooks.example.edu/carrel", "events": ["feedback"]}
    _made(site, "POST", "/notifications/channels", "student1", **channel)
    _made(site, "PUT", "/secrets/HF_TOKEN", "teacher", value="hf_1")
    coming = {"text": "The pool grows on Friday.", "ends_at": time.time() + 86400}
    _made(site, "POST", "/announcements", "admin", **coming)
    devices = site.api("GET", "/pool", user="admin").json()["devices"]
    drained, sick = (str(device["id"]) for device in devices[-2:])
    _made(site, "PUT", f"/pool/{drained}/drain", "admin", why="A new fan on Friday.")
    why = "It reported uncorrectable memory errors."
    _made(site, "PUT", f"/pool/{sick}/quarantine", "admin", why=why)
    return drained


def _taught(site: Installation) -> None:
    """Create a course with one student, one submission and feedback."""
    file = {"name": "ps1.ipynb", "content": base64.b64encode(source()).decode()}
    students = "student,name\nstudent3,Cleo\n"
    _made(site, "POST", "/courses", "admin", name="seminar", students=students)
    place = "/courses/seminar/assignments/ps1"
    _made(site, "POST", f"{place}/release", "admin", files=[file])
    rule = f"{place}/official-checks/rule"
    _made(site, "PUT", rule, "admin", per_day=2, names_cells=True)
    program = {"name": "leaderboard.py", "content": base64.b64encode(b"import torch").decode()}
    _made(site, "PUT", f"{place}/leaderboard", "admin", per_day=5, files=[program])
    timed = {"cron": "0 3 * * *", "zone": "Europe/Berlin"}
    _made(site, "POST", "/courses/seminar/rehearsals/schedules", "admin", **timed)
    sent = _made(site, "POST", f"{place}/submissions", "student3", files=[file])
    page = b"<h1>ps1</h1><p>Well done.</p>"
    given = {
        "path": "ps1.html",
        "content": base64.b64encode(page).decode(),
        "checksum": hashlib.md5(page, usedforsecurity=False).hexdigest(),
    }
    when = datetime.fromtimestamp(sent["at"], UTC).strftime("%Y-%m-%d %H:%M:%S.%f UTC")
    form = {"timestamp": when, "files": json.dumps([given])}
    answer = site.api("POST", "/exchange/feedback/seminar/ps1/student3", user="admin", data=form)
    assert answer.status_code == 200, answer.text


def _dated(site: Installation) -> None:
    """Create a term that outlasts the tests, and a reservation of next week."""
    today = datetime.now(UTC).date()
    first, last, then = (str(today + timedelta(days=days)) for days in (-30, 60, 7))
    _made(site, "PUT", "/terms/winter", "admin", first=first, last=last)
    when = f"{then} 10:00-12:00 Europe/Berlin"
    lab_class = {"group": "vision", "devices": 1, "when": when, "why": "The class on convolution"}
    _made(site, "POST", "/reservations", "admin", **lab_class)


def _jobs(site: Installation, folder: Path) -> dict[str, str]:
    names = ("digits", "broken", "training", "swept")
    done, broken, running, swept = (folder / f"{name}.ipynb" for name in names)
    write_notebook(
        done,
        "for turn in range(rounds):\n    print('turn', turn)",
        SHOWS,
        WRITES,
        parameters=PARAMETERS,
    )
    write_notebook(broken, "print('so far, so good')", FAILS, "print('never')")
    write_notebook(swept, "import carrel", "carrel.report('loss', lr * depth)", parameters=SWEPT)
    write_notebook(running, "print('epoch 1: loss 0.91')", STEPS, "print('never')")
    ids = {
        "done": submit(site, done, parameters={"rounds": 4}, labels={"sweep": "7"}),
        "broken": submit(site, broken, labels={"sweep": "7"}),
        "running": submit(site, running, devices=1, seconds=_JOB_SECONDS),
        "queued": submit(site, running, devices=2, seconds=600, labels={"sweep": "8"}),
        "sweep": submit(site, swept, sweep=SWEEP),
    }
    before = [ids["broken"], f"{ids['done']}:any"]
    ids["cut"] = submit(site, running, devices=2, seconds=600, after=before)
    _scheduled(site, "student1", done.read_text())
    answer = site.api("DELETE", f"/requests/{ids['cut']}", user="student1")
    assert answer.status_code == 200, answer.text
    return ids


def _scheduled(site: Installation, user: str, notebook: str) -> None:
    """Create an active and a paused schedule of a notebook."""
    job = {"group": "cs101", "notebook": {"name": "report.ipynb", "content": notebook}}
    times = {"cron": "0 6 * * 1-5", "zone": "Europe/Berlin"}
    _made(site, "POST", "/schedules", user, **times, job=job)
    paused = _made(site, "POST", "/schedules", user, cron="*/30 * * * *", job=job)
    _made(site, "POST", f"/schedules/{paused['id']}/change", user, state="paused")


def _made(site: Installation, verb: str, path: str, user: str, **body: object) -> dict[str, Any]:
    answer = site.api(verb, path, user=user, json=body)
    assert answer.status_code < 300, (path, answer.text)
    return dict(answer.json())


def _until(site: Installation, request_id: str, user: str, field: str) -> None:
    what = f"{request_id} has its {field}"
    eventually(lambda: site.request(request_id, user=user)[field], what, within=180)
