"""``carrel.progress`` writes one line for the runner, and nothing outside of a job."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import carrel
from carrel.spawners.runner.attempt.progress import ProgressFile, ProgressStep, step_of_bar


def test_progress_overwrites_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "progress.json"
    file = ProgressFile(path)
    assert file.read_new() is None
    monkeypatch.setenv("CARREL_PROGRESS", str(path))
    carrel.progress(1, 1000, "a long text " * 50)
    carrel.progress(2, 10, "short")
    assert path.read_text() == '{"done": 2.0, "of": 10.0, "text": "short"}\n'
    assert file.read_new() == ProgressStep(done=2, of=10, text="short")
    assert file.read_new() is None


def test_progress_does_nothing_outside_of_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CARREL_PROGRESS", raising=False)
    carrel.progress(1)
    monkeypatch.setenv("CARREL_PROGRESS", "/nowhere/at/all")
    carrel.progress(1)


@pytest.mark.parametrize("text", ["", "{}\n", "[1]\n", '{"done": NaN}\n', '{"done": 1}', "x\n"])
def test_a_malformed_progress_file_is_ignored(tmp_path: Path, text: str) -> None:
    path = tmp_path / "progress.json"
    path.write_text(text)
    assert ProgressFile(path).read_new() is None


def test_importing_carrel_imports_nothing_of_it() -> None:
    code = "import sys, carrel; print([n for n in sys.modules if n.startswith('carrel.')])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


@pytest.mark.parametrize(
    ("printed", "step"),
    [
        ("\r 37%|███▋      | 37/100 [00:01<00:02, 30it/s]", ProgressStep(done=37, of=100)),
        (
            "\rtrain:  5%|▌  | 1.5k/30k [00:01<00:20]",
            ProgressStep(done=1500, of=30000, text="train"),
        ),
        ("\r123it [00:04, 30.1it/s]", ProgressStep(done=123)),
        ("no bar at all [1]", None),
    ],
)
def test_a_bar_of_tqdm_is_read(printed: str, step: ProgressStep | None) -> None:
    assert step_of_bar(printed) == step
