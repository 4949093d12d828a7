"""Which files of a job's folders were read while it ran."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from carrel.spawners.runner.attempt import observed_inputs
from carrel.spawners.runner.attempt.observed_inputs import ObservedInputs


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    (home / "data").mkdir(parents=True)
    (home / ".cache").mkdir()
    (home / "data" / "train.csv").write_text("1,2\n")
    (home / "data" / "unread.csv").write_text("3,4\n")
    (home / ".cache" / "hidden").write_text("")
    (home / "data" / "__pycache__").mkdir()
    (home / "data" / "model.py").write_text("SIZE = 3\n")
    (home / "data" / "__pycache__" / "model.cpython-311.pyc").write_bytes(b"")
    return home


def files(observed: ObservedInputs) -> dict[str, Any]:
    found: Any = observed.as_json()
    return {each.pop("path"): each for each in found["files"]}


def test_files_that_were_read_are_hashed_and_others_are_not_listed(home: Path) -> None:
    observed = ObservedInputs({"home": home}, home)
    (home / "data" / "train.csv").read_text()
    (home / ".cache" / "hidden").read_text()
    (home / "result.csv").write_text("made by the job")
    (home / "result.csv").read_text()
    sha256 = hashlib.sha256(b"1,2\n").hexdigest()
    assert files(observed) == {"home/data/train.csv": {"size": 4, "sha256": sha256}}


def test_a_module_that_was_loaded_from_its_cache_counts_as_its_source(home: Path) -> None:
    observed = ObservedInputs({"home": home}, home)
    (home / "data" / "__pycache__" / "model.cpython-311.pyc").read_bytes()
    sha256 = hashlib.sha256(b"SIZE = 3\n").hexdigest()
    assert files(observed) == {"home/data/model.py": {"size": 9, "sha256": sha256}}


def test_what_was_changed_deleted_or_too_large_says_so(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observed_inputs, "FIRST_BYTES", 3)
    monkeypatch.setattr(observed_inputs, "BYTES_A_SECOND", 0)
    data = home / "data"
    (data / "log.txt").write_text("old")
    (data / "gone.txt").write_text("old")
    observed = ObservedInputs({"home": home}, home)
    for name in ("train.csv", "log.txt", "gone.txt"):
        (data / name).read_text()
    later = (data / "log.txt").stat().st_mtime + 60
    os.utime(data / "log.txt", (later, later))
    (data / "gone.txt").unlink()
    assert files(observed) == {
        "home/data/train.csv": {"size": 4, "note": "too large to be hashed: 4 bytes"},
        "home/data/log.txt": {"size": 3, "note": "changed while the job ran"},
        "home/data/gone.txt": {"note": "deleted before the job ended"},
    }


def test_more_files_and_folders_than_the_limits_are_counted(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observed_inputs, "MOST_FILES", 2)
    monkeypatch.setattr(observed_inputs, "MOST_FOLDERS", 1)
    for number in range(3):
        (home / f"{number}.txt").write_text("")
    observed = ObservedInputs({"home": home}, home)
    for number in range(3):
        (home / f"{number}.txt").read_text()
    (home / "data" / "train.csv").read_text()
    found = observed.as_json()
    assert len(found["files"]) == 2  # type: ignore[arg-type]
    assert (found["left_out"], found["incomplete"]) == (1, True)


def test_course_data_is_observed_and_links_are_not_followed(home: Path, tmp_path: Path) -> None:
    course = tmp_path / "course"
    course.mkdir()
    (course / "images.bin").write_bytes(b"x")
    (home / "linked").symlink_to(tmp_path)
    observed = ObservedInputs({"home": home, "course": course}, home)
    (course / "images.bin").read_bytes()
    assert list(files(observed)) == ["course/images.bin"]
