"""kill -9 of a job in the middle of ``carrel.stages``: no finished stage runs again."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import psutil

from ..e2e.support import Installation, eventually
from ..spawners.notebooks import notebook, text_of
from .support import leader

_CODE = """
import os
import time
from pathlib import Path
import numpy as np
import carrel

def start():
    return {"w": np.zeros(3)}

def step(state, values, number):
    with open("ran.txt", "a") as file:
        file.write(f"{os.getpid()}\\n")
    while len(open("ran.txt").readlines()) > int(open("allowed.txt").read()):
        time.sleep(0.02)
    state["w"] = state["w"] * 0.9 + values["lr"] * np.random.normal(size=3)
    return float(np.abs(state["w"]).sum())
"""
_STUDY = """
lr = [[(0, 0.1), (at, then)] for at in (4, 8) for then in (0.01, 0.02, 0.03)]
study = carrel.stages(start, step, carrel.schedules(lr=lr), steps=12, objective="loss")
Path("result.txt").write_text(repr(study.trials()))
Path("counts.txt").write_text(f"{study.saved.run} {study.saved.found} {study.saved.tree}")
"""
TREE = 8 + 3 * 8 + 3 * 4
"""Steps: those with 0.1, then three trials from step 4 on and three from step 8 on."""


def test_no_finished_stage_runs_again(site: Installation) -> None:
    home = site.state / "homes" / "student1"
    expected = _run(site, home, kill_at=0)
    assert _run(site, home, kill_at=19) == expected


def _run(site: Installation, home: Path, *, kill_at: int) -> str:
    """Run the study in a job, killed in the step with a number if it is not 0."""
    for name in ("ran.txt", "result.txt", "counts.txt"):
        (home / name).unlink(missing_ok=True)
    _allow(home, kill_at - 1 if kill_at else 1000)
    body = {
        "group": "cs101",
        "devices": 0,
        "seconds": 600,
        "retries": 3,
        "notebook": {"name": "stages.ipynb", "content": text_of(notebook(_CODE, _STUDY))},
    }
    answer = site.api("POST", "/requests", user="student1", json=body)
    assert answer.status_code == 201, answer.text
    job = str(answer.json()["id"])
    finished = 0
    if kill_at:
        eventually(partial(_has_begun, home, kill_at), f"step {kill_at} has begun")
        finished = _finished_steps(home, job)
        assert kill_at > finished >= 4 + 8  # the first two stages, and a part of the third
        kernel = int((home / "ran.txt").read_text().split()[-1])
        leader(site, job, user="student1").kill()
        eventually(partial(_is_gone, kernel), "its kernel has ended, before it can go on")
        _allow(home, 1000)
    site.wait_for(job, "succeeded", user="student1", within=120)
    assert (home / "counts.txt").read_text() == f"{TREE - finished} {finished} {TREE}"
    assert len((home / "ran.txt").read_text().splitlines()) == kill_at + TREE - finished
    return (home / "result.txt").read_text()


def _allow(home: Path, steps: int) -> None:
    draft = home / "allowed.part"
    draft.write_text(str(steps))
    draft.replace(home / "allowed.txt")


def _has_begun(home: Path, steps: int) -> bool:
    path = home / "ran.txt"
    return path.exists() and len(path.read_text().splitlines()) == steps


def _is_gone(process: int) -> bool:
    try:
        return bool(psutil.Process(process).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def _finished_steps(home: Path, job: str) -> int:
    lines = (home / f".local/share/carrel/stages/{job}/stages.jsonl").read_text().splitlines()
    return sum(len(json.loads(line)["values"]) for line in lines if line)
