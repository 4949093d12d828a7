"""The class of a failed cell or command, and what a lack of memory says."""

from __future__ import annotations

import pytest

from carrel.hub.attempts.output_limits import GIB, MIB
from carrel.spawners.runner.attempt.memory import KillCounter
from carrel.spawners.runner.attempt.memory_errors import MemoryShortage
from carrel.spawners.runner.attempt.outcome_messages import (
    cell_error,
    command_failed,
    command_succeeded,
    out_of_memory,
    out_of_system_memory,
)

POOL = "HTTPSConnectionPool(host='data.example.org', port=443): Read timed out."


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("ConnectionResetError", "[Errno 104] Connection reset by peer", "connection_failed"),
        ("ReadTimeout", POOL, "connection_failed"),
        ("TimeoutError", "no answer from db.example.org:5432", "connection_failed"),
        ("TimeoutError", "10.0.0.7 timed out", "connection_failed"),
        ("TimeoutError", "my own loop took too long", "cell_error"),
        ("URLError", "<urlopen error unknown url type: ftps>", "cell_error"),
        ("OSError", "[Errno 28] No space left on device: 'a'", "disk_full"),
        ("OSError", "[Errno 122] Disk quota exceeded: 'a'", "cell_error"),
        ("MemoryError", "", "out_of_memory"),
        ("_ArrayMemoryError", "Unable to allocate 74.5 GiB for an array", "out_of_memory"),
        ("OutOfMemoryError", "CUDA out of memory. Tried to allocate 2 GiB.", "out_of_memory"),
        ("ValueError", "see https://example.org: it timed out", "cell_error"),
    ],
)
def test_an_error_of_a_cell_has_a_class(name: str, value: str, code: str) -> None:
    assert cell_error("cell 3", name, value, "").code == code


def test_a_lack_of_memory_says_what_was_used_and_leaves_the_need_to_the_service() -> None:
    killed = out_of_memory("cell 2", 9 * GIB, 8 * GIB)
    assert killed.message == (
        "Killed for memory in cell 2: its processes used 9 GiB of at most 8 GiB. It is not retried."
    )
    assert killed.memory == MemoryShortage(used=9 * GIB, limit=8 * GIB)
    of_command = out_of_memory("", 410 * MIB, 400 * MIB).message
    assert of_command.startswith("Killed for memory: its processes used 410 MiB of at most")
    raised = cell_error("cell 1", "_ArrayMemoryError", "Unable to allocate 74.5 GiB", "")
    assert raised.message == (
        "error in cell 1: _ArrayMemoryError: Unable to allocate 74.5 GiB. It is not retried."
    )
    assert raised.memory == MemoryShortage(wanted=149 * GIB // 2)
    assert cell_error("cell 1", "ValueError", "no", "").memory is None


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"memory.peak": 900 * MIB, "memory.max": GIB}, "used up to 900 MiB of its limit of 1 GiB"),
        ({"memory.peak": 900 * MIB, "memory.max": "max"}, "used up to 900 MiB."),
        ({}, "ran out."),
    ],
)
def test_a_kill_by_the_system_says_what_the_kernel_has_counted(
    files: dict[str, object], said: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    group = tmp_path_factory.mktemp("group")
    for name, value in files.items():
        (group / name).write_text(f"{value}\n")
    counter = KillCounter(group / "memory.events")
    assert said in out_of_system_memory("cell 2", *counter.peak_and_limit()).message


def test_a_command_that_exits_with_the_status_for_a_temporary_failure_may_be_retried() -> None:
    assert command_failed(("sync",), 75, "").code == "temporary_failure"
    assert command_failed(("sync",), 74, "").code == "command_failed"


def test_a_command_is_quoted_unless_it_is_one_of_carrels_own() -> None:
    own = ("python", "-P", "-m", "carrel.courses.grading_runs.worker")
    assert command_succeeded(own).message == "Carrel's program ran without an error."
    assert command_failed(own, 1, "").message == "Carrel's program exited with status 1"
    for command in (("python", "-P", "-m", "train"), ("python", "-P", "-m"), ("sync",)):
        assert command_succeeded(command).message == f"`{' '.join(command)}` ran without an error."
