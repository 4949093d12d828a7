"""When a kernel saves its variables, and when a snapshot is complete."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
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


def saves_in(folder: Path, *, took: float = TOOK, **variables: object) -> Snapshots:
    shell = SimpleNamespace(user_ns={"value": [1, 2], **variables}, user_ns_hidden={})
    made = Snapshots(shell, str(folder))
    made.clock = (number * took for number in count(1)).__next__
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


@pytest.mark.parametrize(("gateway", "number"), [(None, 1), (object(), 0)])
def test_a_kernel_with_connections_to_spark_is_not_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gateway: object, number: int
) -> None:
    context = SimpleNamespace(_gateway=gateway)
    monkeypatch.setitem(sys.modules, "pyspark", SimpleNamespace(SparkContext=context))  # type: ignore[arg-type]
    saves = saves_in(tmp_path)
    saves.take(1, 1, 10.0)
    assert saved(saves) == number


@pytest.mark.parametrize(("took", "pause"), [(0.01, 1.0), (0.1, 5.0)])
def test_a_short_snapshot_costs_a_hundredth_of_the_time_until_five_seconds_are_unsaved(
    tmp_path: Path, took: float, pause: float
) -> None:
    saves, numbers = saves_in(tmp_path, took=took), []
    for number, seconds in enumerate((1.0, 0.9 * pause, 0.2 * pause), start=1):
        saves.take(number, number, seconds)
        numbers.append(saved(saves))
    assert numbers == [1, 1, 3]


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


class Endless:
    """A value that cannot be saved in any time, such as a client whose server does not answer."""

    def __reduce__(self) -> tuple[Any, ...]:
        threading.Event().wait()
        raise AssertionError


def test_a_snapshot_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    saves = saves_in(tmp_path, client=Endless())
    saves.longest = 1
    saves.take(1, 1, 1.0, now=True)
    assert not (tmp_path / snapshots.WRITING).exists()
    assert saved(saves) == 0


def test_the_search_for_what_cannot_be_saved_needs_no_memory_for_the_rest(tmp_path: Path) -> None:
    size = 200 << 20
    code = (
        "import resource, sys; from types import SimpleNamespace as Shell\n"
        "from carrel.hub.attempts.snapshot_side import Snapshots\n"
        f"names = {{'large': bytes({size}), 'unsaved': (_ for _ in ())}}\n"
        "Snapshots(Shell(user_ns=names, user_ns_hidden={}), sys.argv[1]).take(1, 1, 1.0, True)\n"
        "who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)\n"
        "print(*(resource.getrusage(each).ru_maxrss * 1024 for each in who))"
    )
    (tmp_path / "output.ipynb").touch()
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    own, forked = map(int, done.stdout.split())
    assert forked < own + size // 2
    found = snapshots.find(tmp_path)
    assert found is not None
    assert [*found.left_out] == ["unsaved"]


@pytest.mark.parametrize(("index", "number"), [(10**12, 10**12), (3, 10), (-1, 0), (3, -1)])
def test_a_snapshot_after_a_cell_that_no_notebook_has_is_none(
    tmp_path: Path, index: int, number: int
) -> None:
    """A job writes the file: the service counts the cells up to this number."""
    saves = saves_in(tmp_path)
    saves.take(1, 1, 1.0, now=True)
    header = json.loads((tmp_path / snapshots.SNAPSHOT).read_text())
    assert snapshots.find(tmp_path) is not None
    (tmp_path / snapshots.SNAPSHOT).write_text(
        json.dumps({**header, "index": index, "number": number})
    )
    assert snapshots.find(tmp_path) is None


def test_cells_that_are_too_long_are_not_compared_line_by_line() -> None:
    """The time for that is the square of their length, and the service waits for it."""
    before = "\n".join(f"a{number % 97}" for number in range(100_000))
    now = "\n".join(f"a{number * 7 % 97}" for number in range(100_000))
    changed = snapshots.changed_cells([before, "x = 1"], [now, "x = 2"], until=10**12)
    assert [(cell.number, cell.diff.split("\n")) for cell in changed] == [
        (1, ["--- before", "+++ now", "(200,000 lines: too many to be compared)"]),
        (2, ["--- before", "+++ now", "@@ -1 +1 @@", "-x = 1", "+x = 2"]),
    ]


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
