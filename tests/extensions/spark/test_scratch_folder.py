"""The folder of Spark's temporary files: private, and removed also after a kill."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

from carrel.extensions.spark import scratch_folder

MAKE = """
import os, signal, sys
from carrel.extensions.spark import scratch_folder
print(scratch_folder.make(), flush=True)
if sys.argv[1] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""


def folder_of_process(way: str, parent: Path) -> Path:
    done = subprocess.run(
        [sys.executable, "-P", "-c", MAKE, way],
        env={"TMPDIR": str(parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return Path(done.stdout.strip())


def test_the_folder_ends_with_its_process(tmp_path: Path) -> None:
    folder = folder_of_process("ended", tmp_path)
    assert folder.parent == tmp_path
    assert not folder.exists()


def test_a_folder_of_a_killed_process_is_removed_by_the_next_one(tmp_path: Path) -> None:
    left = folder_of_process("killed", tmp_path)
    assert left.stat().st_mode & 0o077 == 0
    (left / "blocks").mkdir()
    folder_of_process("ended", tmp_path)
    assert not left.exists()


def test_a_folder_in_use_and_other_folders_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    used = scratch_folder.make()
    other = tmp_path / "carrel-spark-of-a-user"
    other.mkdir()
    folder_of_process("ended", tmp_path)
    assert used.is_dir()
    assert other.is_dir()


def test_a_folder_that_another_process_sees_before_it_is_locked_is_not_shared_or_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, begun = fcntl.flock, []

    def lock_after_another_process(descriptor: int, operation: int) -> None:
        if operation == fcntl.LOCK_EX and not begun:
            begun.append(folder_of_process("ended", tmp_path))
        lock(descriptor, operation)

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(fcntl, "flock", lock_after_another_process)
    made = scratch_folder.make()
    assert begun
    assert made.is_dir()
    folder_of_process("ended", tmp_path)
    assert made.is_dir(), "it is locked"
    assert list(tmp_path.iterdir()) == [made]


def test_a_fork_that_ends_leaves_the_folder(tmp_path: Path) -> None:
    code = """
import os, sys
from carrel.extensions.spark import scratch_folder
folder = scratch_folder.make()
child = os.fork()
if not child:
    sys.exit()
os.waitpid(child, 0)
print(folder.is_dir())
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env={"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("True\n", "")
    assert not list(tmp_path.iterdir())
