"""``carrel.checkpoint()`` and ``carrel.resume_path()``, and a training that is resumed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import carrel

TRAINING = """
import os, pathlib, sys
import numpy
import carrel
state = {"step": 0, "weights": numpy.zeros(50), "random": numpy.random.default_rng(7)}
if path := carrel.resume_path():
    state = numpy.load(path, allow_pickle=True).item()
for step in range(state["step"], 40):
    noise = state["random"].normal(size=50)
    state["weights"] = state["weights"] * 0.9 + noise ** 3
    state["step"] = step + 1
    numpy.save("state.part.npy", state, allow_pickle=True)
    os.replace("state.part.npy", "state.npy")
    carrel.checkpoint("state.npy")
    if len(sys.argv) > 1 and step + 1 == int(sys.argv[1]):
        os._exit(9)
pathlib.Path("result").write_bytes(state["weights"].tobytes())
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CARREL_REQUEST", "j-1")
    monkeypatch.delenv("CARREL_RESUMES", raising=False)
    return tmp_path


def test_a_checkpoint_is_found_by_the_same_job_and_by_those_that_resume_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert carrel.resume_path() is None
    for name in ("first.pt", "second.pt"):
        (home / name).write_text(name)
        carrel.checkpoint(home / name)
    assert carrel.resume_path() == home / "second.pt"
    for request, resumed in (("j-2", "j-1"), ("j-3", "j-2")):
        monkeypatch.setenv("CARREL_REQUEST", request)
        monkeypatch.setenv("CARREL_RESUMES", resumed)
        assert carrel.resume_path() == home / "second.pt"
    monkeypatch.setenv("CARREL_REQUEST", "j-9")
    monkeypatch.delenv("CARREL_RESUMES")
    assert carrel.resume_path() is None
    monkeypatch.setenv("CARREL_REQUEST", "j-1")
    (home / "second.pt").unlink()
    assert carrel.resume_path() is None


def test_what_later_attempts_would_not_find_is_refused(
    home: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with pytest.raises(FileNotFoundError):
        carrel.checkpoint(home / "missing")
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "x"
    elsewhere.write_text("")
    with pytest.raises(ValueError, match="does not lie below"):
        carrel.checkpoint(elsewhere)


def test_outside_of_a_job_nothing_happens(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CARREL_REQUEST")
    (home / "x").write_text("")
    carrel.checkpoint(home / "x")
    assert carrel.resume_path() is None
    assert not (home / ".local").exists()


def test_a_training_that_was_stopped_and_resumed_gives_the_same_bits(tmp_path: Path) -> None:
    results = []
    for name, stops in (("whole", [[]]), ("stopped", [["11"], ["25"], []])):
        home = tmp_path / name
        home.mkdir()
        environment = {**os.environ, "HOME": str(home), "CARREL_REQUEST": "j-1"}
        for words in stops:
            subprocess.run(
                [sys.executable, "-c", TRAINING, *words], cwd=home, env=environment, check=False
            )
        results.append((home / "result").read_bytes())
    assert results[0] == results[1]
