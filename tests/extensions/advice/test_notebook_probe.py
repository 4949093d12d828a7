"""A notebook is probed: its parameters, its progress, and what goes wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from carrel.extensions.advice.notebook_probe import probe_notebook
from carrel.hub.errors import InvalidInput

TRAINING = """
import carrel, time
time.sleep(0)
block = bytearray(batch_size << 20)
for epoch in range(1000):
    time.sleep(0.08 / batch_size + 0.01)
    carrel.progress(epoch + 1, 1000)
"""

PROGRESS = """
import carrel, time
for step in range(10**9):
    time.sleep(0.05)
    carrel.progress(step, {of})
"""


def notebook(*cells: str, language: str = "python") -> str:
    return json.dumps(
        {
            "cells": [
                {
                    "cell_type": "code",
                    "source": source,
                    "metadata": {"tags": ["parameters"]} if number == 0 else {},
                }
                for number, source in enumerate(cells)
            ],
            "metadata": {"kernelspec": {"name": "x", "language": language}},
        }
    )


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work, kept = tmp_path / "work", tmp_path / "kept"
    work.mkdir()
    kept.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("CARREL_OUTPUT_DIR", str(kept))
    return tmp_path


def test_the_run_is_predicted_by_its_progress_and_nothing_is_left(folder: Path) -> None:
    (folder / "work" / "data.txt").write_text("kept")
    source = notebook(
        "batch_size = 2\nthreads = 1",
        "open('data.txt', 'w').write('changed'); open('model.bin', 'w').close()",
        TRAINING,
    )
    found = probe_notebook(source, {"batch_size": 4}, budget=5, whole_budget=True).found
    assert found.start.setting.batch == 4
    assert 1 / found.start.rate > 1000 * 0.03
    assert (folder / "work" / "data.txt").read_text() == "kept"
    assert [path.name for path in (folder / "work").iterdir()] == ["data.txt"]
    said = "\n".join(found.sentences)
    assert "The runs of the probe wrote model.bin, into a copy of the working folder" in said
    kept = json.loads((folder / "kept" / "advice.json").read_text())
    assert kept["sentences"] == list(found.sentences)
    fastest = found.fastest.setting
    assert kept["parameters"] == {"batch_size": fastest.batch, "threads": fastest.threads}
    assert kept["run_seconds"] == pytest.approx(1 / found.fastest.rate)


def test_a_probe_ends_after_a_twentieth_of_the_predicted_run() -> None:
    found = probe_notebook(notebook("batch_size = 8", "pass"), {}, budget=60).found
    assert found.measured == 1
    assert any("ended after 5 % of the predicted run" in each for each in found.sentences)
    assert found.seconds < 30


@pytest.mark.parametrize(
    ("source", "arguments", "said"),
    [
        (notebook("n = 1", "1 / 0"), {}, "The notebook failed with .*: ZeroDivisionError"),
        (
            notebook("n = 1", "while True: pass"),
            {"budget": 2},
            "neither ended nor called carrel.progress",
        ),
        (
            notebook("n = 1", "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)"),
            {},
            "was ended by signal 11",
        ),
        (notebook("n = 1.5"), {"batch_parameter": "n"}, "no parameter n with a whole number"),
        (notebook("n = 1", language="R"), {}, "in Python only, not in R"),
        (notebook("batch_size = 0", "pass"), {}, "The parameter batch_size is 0"),
        (notebook("batch_size = -8", "pass"), {}, "The parameter batch_size is -8"),
        (notebook("n = 1", "pass"), {"budget": float("nan")}, "The budget nan is not possible"),
        (notebook("n = 1", "pass"), {"deadline": float("inf")}, "The deadline inf is not possible"),
        (notebook("n = {[]: 1}"), {}, "The notebook failed with .*: TypeError: unhashable"),
        (
            notebook("n = 1", PROGRESS.format(of="float('nan')")),
            {"budget": 2},
            "neither ended nor called carrel.progress",
        ),
        (
            notebook("n = 1", PROGRESS.format(of="float('inf')")),
            {"budget": 2},
            "neither ended nor called carrel.progress",
        ),
    ],
    ids=[
        "fails",
        "never ends",
        "crashes",
        "no such parameter",
        "another language",
        "a batch of zero",
        "a negative batch",
        "a budget that is no number",
        "an infinite deadline",
        "a value that cannot be",
        "progress of no number",
        "progress without an end",
    ],
)
def test_a_notebook_that_cannot_be_probed_is_refused(
    source: str, arguments: dict[str, object], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        probe_notebook(source, {}, **arguments)  # type: ignore[arg-type]


LOOP = """
import carrel, time
for step in range(10 * 8 // batch_size):
    time.sleep(0.15)
    carrel.progress(step + 1, 10 * 8 // batch_size)
"""


def test_a_run_that_trained_nothing_is_no_advice() -> None:
    source = notebook("batch_size = 32", LOOP)
    found = probe_notebook(source, {}, budget=8, whole_budget=True).found
    failed = [each for each in found.sentences if each.startswith("Failed: batch 128")]
    assert failed, found.sentences
    assert "the batch can be larger than the data" in failed[0]
    assert (found.fastest.setting.batch or 0) < 128


EPOCHS = """
import carrel, time
for epoch in range(100):
    for batch in range(150 // batch_size):
        time.sleep(0.02)
    time.sleep(0.002)
    carrel.progress(epoch + 1, 100)
"""


def test_a_batch_whose_epochs_drop_all_data_is_no_advice() -> None:
    source = notebook("batch_size = 32\nthreads = 1", EPOCHS)
    found = probe_notebook(source, {}, budget=20, whole_budget=True).found
    failed = [each for each in found.sentences if each.startswith("Failed: batch 256")]
    assert failed, found.sentences
    assert "may have trained nothing: the batch can be larger than the data" in failed[0]
    assert found.fastest.setting.batch == 128


def test_a_present_batch_that_seems_to_train_nothing_is_said() -> None:
    source = notebook("batch_size = 256\nthreads = 1", EPOCHS)
    found = probe_notebook(source, {}, budget=20, whole_budget=True, largest=256).found
    assert any(
        each.startswith("The present batch 256 is faster than batch 128")
        for each in found.sentences
    )


def test_no_batch_above_the_largest_is_tried() -> None:
    source = notebook("batch_size = 32", LOOP)
    found = probe_notebook(source, {}, budget=8, whole_budget=True, largest=64).found
    assert found.fastest.setting.batch in (32, 64)
    assert not any("128" in each for each in found.sentences)
    with pytest.raises(InvalidInput, match="The parameter batch_size is 32"):
        probe_notebook(source, {}, largest=16)


def test_a_notebook_without_a_batch_says_so() -> None:
    found = probe_notebook(notebook("n = 1", "pass"), {}, budget=10).found
    assert "There is no batch to vary: the notebook has no parameter such as batch_size." in (
        found.sentences
    )


def test_a_run_changes_neither_the_checkpoint_nor_the_files_of_the_job(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = folder / "home/.local/share/carrel/checkpoints"
    checkpoints.mkdir(parents=True)
    model = folder / "home/model.pt"
    model.touch()
    (checkpoints / "j-1").write_text("model.pt")
    monkeypatch.setenv("HOME", str(folder / "home"))
    monkeypatch.setenv("CARREL_REQUEST", "j-2")
    monkeypatch.setenv("CARREL_RESUMES", "j-1")
    monkeypatch.setenv("CARREL_SAVED", str(folder / "saved"))
    source = notebook(
        "n = 1",
        "import carrel, os, pathlib\n"
        "assert carrel.resume_path() is None and carrel.notice() is None\n"
        f"carrel.checkpoint({str(model)!r})\n"
        "carrel.saved()\n"
        "(pathlib.Path(os.environ['CARREL_OUTPUT_DIR']) / 'scores.csv').touch(exist_ok=False)",
    )
    assert not probe_notebook(source, {}, budget=10).found.start.problem
    assert [path.name for path in checkpoints.iterdir()] == ["j-1"]
    assert not (folder / "saved").exists()
    assert [path.name for path in (folder / "kept").iterdir()] == ["advice.json"]


DEVICE = """
import sys, types
def mem_get_info():
    {limit}
cuda = types.SimpleNamespace(
    is_available=lambda: True,
    max_memory_reserved=lambda: batch_size << 20,
    memory_reserved=lambda: batch_size << 20,
    mem_get_info=mem_get_info,
)
sys.modules["torch"] = types.SimpleNamespace(cuda=cuda)
"""


@pytest.mark.parametrize(
    ("limit", "budget", "said"),
    [
        ("return (100 - batch_size << 20, 0)", 6, "of 100 MiB of memory"),
        ("raise RuntimeError('no device')", 3, "no limit of memory can be read here"),
    ],
    ids=["known", "unknown"],
)
def test_memory_of_a_device_is_compared_with_that_of_the_device(
    limit: str, budget: float, said: str
) -> None:
    source = notebook("batch_size = 8", DEVICE.format(limit=limit))
    found = probe_notebook(source, {}, budget=budget, whole_budget=True, memory=1 << 40).found
    assert any(said in each for each in found.sentences), found.sentences
    assert found.largest_batch <= 100
    assert found.start.memory_bytes == 8 << 20


def test_links_lead_into_the_copy_or_to_where_they_led(folder: Path) -> None:
    work, data = folder / "work", folder / "data"
    data.mkdir()
    (data / "rows.csv").write_text("1")
    (work / "model.pt").write_text("kept")
    (work / "data").symlink_to("../data")
    (work / "latest.pt").symlink_to(work / "model.pt")
    (work / "circle").symlink_to("circle")
    source = notebook(
        "n = 1", "assert open('data/rows.csv').read() == '1'\nopen('latest.pt', 'w').write('new')"
    )
    assert not probe_notebook(source, {}, budget=10).found.start.problem
    assert (work / "model.pt").read_text() == "kept"


def test_a_folder_that_is_too_large_is_refused_before_the_first_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (folder / "work" / "data.bin").open("wb") as file:
        file.truncate((256 << 20) + 1)
    source = notebook("n = 1", f"open({str(folder / 'ran')!r}, 'w').close()")
    with pytest.raises(InvalidInput, match="is too large: a probe runs the notebook in a copy"):
        probe_notebook(source, {})
    assert not (folder / "ran").exists()
    (folder / "work" / "data.bin").rename(folder / "work" / ".hidden")
    monkeypatch.setenv("HOME", str(folder / "work"))
    assert not probe_notebook(source, {}, budget=10).found.start.problem
    assert (folder / "ran").exists()
