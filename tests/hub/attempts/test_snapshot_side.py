"""When a kernel saves its variables, and when a snapshot is complete."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from carrel.hub.attempts import snapshot_side, snapshots
from carrel.hub.attempts.snapshot_side import Snapshots

from ...fake_service import eventually

TOOK = 0.3
"""How long each snapshot takes, by the clock of these tests."""


def saves_in(folder: Path) -> Snapshots:
    shell = SimpleNamespace(user_ns={"value": [1, 2]}, user_ns_hidden={})
    made = Snapshots(shell, str(folder))
    made.clock = (number * TOOK for number in count(1)).__next__
    (folder / "output.ipynb").touch()
    return made


def saved(saves: Snapshots) -> int:
    """Wait for the snapshot that is being written; return the number of the last saved cell."""
    eventually(lambda: not saves.is_writing())
    found = snapshots.find(Path(saves.folder))
    return 0 if found is None else found.number


def test_the_next_snapshot_waits_twenty_times_as_long_as_the_last_one_took(tmp_path: Path) -> None:
    saves, numbers = saves_in(tmp_path), []
    for number, seconds in enumerate((0.09, 0.02, 3.0, 2.9, 0.2, 5.9, 0.2), start=1):
        saves.take(number, number, seconds)
        numbers.append(saved(saves))
    assert numbers == [0, 2, 2, 2, 5, 5, 7]


def test_a_kernel_that_ends_soon_saves_what_is_not_saved_in_any_case(tmp_path: Path) -> None:
    saves, numbers = saves_in(tmp_path), []
    for number, seconds in enumerate((1.0, 0.01, 0.0, 0.5), start=1):
        saves.take(number, number, seconds, now=True)
        assert not (tmp_path / snapshots.WRITING).exists()
        numbers.append(saved(saves))
    assert numbers == [1, 2, 2, 4]


def test_a_snapshot_is_complete_when_its_mark_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    dump: Callable[..., None] = json.dump

    def late(*arguments: Any) -> None:
        gate.read_bytes()
        dump(*arguments)

    monkeypatch.setattr(snapshot_side.json, "dump", late)
    saves = saves_in(tmp_path)
    saves.take(1, 1, 1.0)
    with gate.open("wb"):  # the pickle is written
        assert (tmp_path / snapshots.WRITING).exists()
        assert saves.is_writing()
    eventually(lambda: not (tmp_path / snapshots.WRITING).exists())
    found = snapshots.find(tmp_path)
    assert found is not None
    assert found.number == 1
    assert not saves.is_writing()


def test_the_snapshot_before_one_whose_process_was_killed_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saves = saves_in(tmp_path)
    saves.take(1, 1, 1.0)
    assert saved(saves) == 1

    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as killed:
        killed.setattr(snapshot_side.json, "dump", die)
        saves.take(2, 2, 100.0)
        assert saved(saves) == 1
    assert not (tmp_path / snapshots.WRITING).exists()
    saves.take(3, 3, 100.0)
    assert saved(saves) == 3
    assert len([*tmp_path.glob("snapshot-*.pkl")]) == 1
