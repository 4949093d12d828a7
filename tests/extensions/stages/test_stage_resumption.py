"""A study of a job that was killed goes on: no finished stage runs again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import carrel
from carrel.extensions.stages.study import StageStudy

STUDY = """
import json, os, random, signal, sys
from pathlib import Path
import numpy as np
import carrel

def start():
    return {"w": np.zeros(3), "generator": np.random.default_rng(7)}

def step(state, values, number):
    with open("ran", "a") as file:
        file.write("x")
    if Path("ran").stat().st_size == int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)
    noise = state["generator"].normal(size=3) + np.random.normal(size=3) + random.random()
    state["w"] = state["w"] * 0.9 + values["lr"] * noise
    return {"loss": float(np.abs(state["w"]).sum())}

lr = [[(0, first), (at, then)] for first in (0.1, 0.2) for at in (4, 8) for then in (0.01, 0.02)]
study = carrel.stages(start, step, carrel.schedules(lr=lr), steps=12, objective="loss")
Path("result").write_text(repr([study.curve(number) for number in range(1, 9)]))
Path("counts").write_text(json.dumps([study.saved.run, study.saved.found, study.saved.tree]))
"""


def attempt(home: Path, kill_at: int = 0, **environment: str) -> int:
    """Run the study until so many steps have begun in all attempts; return its exit status."""
    return subprocess.run(
        [sys.executable, "-c", STUDY, str(kill_at)],
        cwd=home,
        env={**os.environ, "HOME": str(home), "CARREL_REQUEST": "j-1", **environment},
        check=False,
    ).returncode


def finished_steps(home: Path) -> int:
    texts = [path.read_text() for path in home.glob(".local/share/carrel/stages/*/stages.jsonl")]
    return sum(len(json.loads(line)["values"]) for line in "".join(texts).splitlines() if line)


def test_no_finished_stage_runs_again_after_kills(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for home in (whole, killed):
        home.mkdir()
    assert attempt(whole) == 0
    for kill_at in (3, 19, 40):
        assert attempt(killed, kill_at) == -signal.SIGKILL
    finished, begun = finished_steps(killed), (killed / "ran").stat().st_size
    assert begun == 40
    assert 40 - finished <= 3 * 8  # of each attempt at most the stage in which it was killed
    # The last attempt runs exactly what was not finished; here, in a job that resumes the first.
    assert attempt(killed, CARREL_REQUEST="j-2", CARREL_RESUMES="j-1") == 0
    ran, found, tree = json.loads(
        (killed / "counts").read_text().replace("(", "[").replace(")", "]")
    )
    assert (ran, found) == (tree - finished, finished)
    assert (killed / "ran").stat().st_size == begun + ran
    assert (killed / "result").read_text() == (whole / "result").read_text()
    assert not list(killed.glob(".local/share/carrel/stages/*/*.checkpoint"))  # no longer needed


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CARREL_REQUEST", "j-1")
    monkeypatch.delenv("CARREL_RESUMES", raising=False)
    return tmp_path


def start() -> list[float]:
    return [0.0]


def test_a_job_with_a_notice_saves_its_work_in_the_middle_of_a_stage(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARREL_NOTICE", str(home / "notice"))
    monkeypatch.setenv("CARREL_SAVED", str(home / "saved"))
    began: list[int] = []

    def step(state: list[float], values: dict[str, Any], number: int) -> float:
        began.append(number)
        state[0] += values["lr"] * number
        if number == 5:
            (home / "notice").write_text(
                json.dumps({"message": "No.", "stops_at": 1.0, "comes_back": True})
            )
        if (home / "saved").exists():
            raise KeyboardInterrupt
        return state[0]

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            carrel.stages(start, step, [{"lr": 1.0}], steps=10_000_000, name="x")
    assert began[-2] == began[-1] == finished_steps(home) > 5


def run(folder: Path, *lr: Any, **options: Any) -> StageStudy:
    def step(state: list[float], values: dict[str, Any], number: int) -> float:
        state[0] = state[0] * 0.9 + values["lr"] * number
        return state[0]

    schedules = [{"lr": each} for each in lr]
    return carrel.stages(start, step, schedules, steps=10, folder=folder, **options)


def test_a_folder_keeps_results_for_later_studies_of_the_same_code(tmp_path: Path) -> None:
    decays = [[(0, 1), (5, lr)] for lr in (2, 3, 4)]
    folder = tmp_path / "results"
    assert run(folder, *decays[:2]).saved.run == 15
    later = run(folder, *decays)
    assert (later.saved.run, later.saved.found) == (5, 15)
    assert later.trials() == run(tmp_path / "other", *decays).trials()
    assert run(folder, *decays, seed=1).saved.run == 20
    assert run(folder, *decays, name="other data").saved.run == 20


def test_records_and_checkpoints_that_a_crash_has_cut_off_count_as_absent(tmp_path: Path) -> None:
    decays = [[(0, 1), (5, lr)] for lr in (2, 3)]
    expected = run(tmp_path, *decays).trials()
    records = tmp_path / "stages.jsonl"
    records.write_bytes(records.read_bytes()[:-9])
    for path in tmp_path.glob("*.checkpoint"):
        path.write_bytes(path.read_bytes()[:-9])
    again = run(tmp_path, *decays)
    # The checkpoint at step 5 is unreadable: its steps run again before the lost stage does.
    assert (again.saved.found, again.saved.run) == (10, 10)
    assert again.trials() == expected
    assert run(tmp_path, *decays).saved.run == 0
