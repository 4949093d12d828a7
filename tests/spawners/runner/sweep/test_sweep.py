"""Sweeps: real runners and kernels, a fake service."""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from carrel.hub.attempts.trials import hand_over_trials, notebook_name, read_trials, stop_trial
from carrel.hub.interfaces.backend import LaunchOrder
from carrel.hub.records.requests import SweepOrder
from carrel.hub.sweeps.explanation import UNFORKED_MODULES
from carrel.hub.sweeps.space_syntax import space_from_json
from carrel.spawners.runner.kernels import branch_side
from carrel.spawners.runner.sweep.attempt import allow_descriptors

from ....docker_engine import unmount
from ....fake_service import eventually
from ....requirements import need
from ...attempts import wait_for_end
from ...conftest import Desk
from ...notebooks import notebook, printed, read, statuses


def sweep(desk: Desk, order: LaunchOrder, **options: Any) -> LaunchOrder:
    space = options.pop("space", {"grid": {"lr": [1, 2], "depth": [3, 4]}})
    job = replace(
        order.job,
        sweep=SweepOrder(space=space, trials=len(space_from_json(space).trials()), **options),
    )
    return replace(order, job=job)


def states(order: LaunchOrder) -> dict[int, str]:
    found = read_trials(order.folder)
    return {number: str(found[number].state) for number in sorted(found)}


def trial(order: LaunchOrder, number: int) -> Any:
    return read(order.folder / "files" / notebook_name(number))


def log(order: LaunchOrder) -> str:
    return (order.folder / "log.txt").read_text()


def test_shared_cells_run_once(desk: Desk) -> None:
    nb = notebook(
        "with open('ran', 'a') as f: f.write('x')",
        "data = [1]",
        "data.append(lr); print(data)",
        "print(data, lr, depth)",
        parameters="lr = 0\ndepth = 0",
    )
    nb.cells[2].metadata["tags"] = ["carrel-share"]
    order = sweep(desk, desk.order(nb), parallel=2)
    assert wait_for_end(desk, order, desk.backend.start(order)) == 0
    assert states(order) == dict.fromkeys((1, 2, 3, 4), "succeeded")
    assert (order.home / "ran").read_text() == "x"
    shown = {n: printed(trial(order, n)) for n in (1, 2, 3, 4)}
    assert shown == {
        1: "[1, 1]\n[1, 1] 1 3\n",
        2: "[1, 1]\n[1, 1] 1 4\n",
        3: "[1, 2]\n[1, 2] 2 3\n",
        4: "[1, 2]\n[1, 2] 2 4\n",
    }
    first, last = (trial(order, n).cells[1].metadata for n in (1, 4))
    assert first.execution == last.execution


def test_a_trial_that_fails_stops_no_other_one(desk: Desk) -> None:
    nb = notebook("print(1 // lr)", parameters="lr = 0")
    order = sweep(desk, desk.order(nb), space={"grid": {"lr": [1, 0, 2]}})
    wait_for_end(desk, order, desk.backend.start(order))
    assert states(order) == {1: "succeeded", 2: "failed", 3: "succeeded"}
    assert desk.service.ended["code"] == "cell_error"
    assert desk.service.ended["message"] == (
        "1 of 3 trials failed. Trial 2: error in cell 2: ZeroDivisionError: integer division or "
        "modulo by zero"
    )
    assert statuses(trial(order, 2)) == ["completed", "completed", "failed"]


def test_a_shared_cell_that_fails_fails_all_its_trials(desk: Desk) -> None:
    nb = notebook("1 / 0", "print(lr)", parameters="lr = 0")
    order = sweep(desk, desk.order(nb), space={"grid": {"lr": [1, 2]}})
    wait_for_end(desk, order, desk.backend.start(order))
    assert states(order) == {1: "failed", 2: "failed"}
    assert "2 of 2 trials failed" in desk.service.ended["message"]
    for number in (1, 2):
        executed = trial(order, number)
        assert statuses(executed) == ["completed", "completed", "failed", "pending"]
        assert executed.metadata.papermill.parameters == {"lr": number}
        assert executed.metadata.carrel.trial == number


def test_the_kernel_of_a_trial_that_dies_is_reported_with_its_signal(desk: Desk) -> None:
    nb = notebook("import os, signal", "os.kill(os.getpid(), lr)", parameters="lr = 0")
    order = sweep(desk, desk.order(nb), space={"grid": {"lr": [9, 0]}})
    wait_for_end(desk, order, desk.backend.start(order))
    assert states(order) == {1: "failed", 2: "succeeded"}
    assert "kernel died in cell 3" in desk.service.ended["message"]
    assert "SIGKILL" in desk.service.ended["message"]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own, on which an attempt can have its folder."""
    need("docker", os.geteuid() == 0 and shutil.which("mount"), "a small disk needs root")
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder], check=False
    )
    need("docker", mounted.returncode == 0, "a small disk cannot be mounted here")
    yield folder
    unmount(folder)


def test_a_full_disk_ends_no_trial(disk: Path, desk: Desk) -> None:
    # The log has begun: what is left of its first block is enough for a line.
    waits = (
        "import time, pathlib\nflag = pathlib.Path(f'flag-{lr}'); print('begins')\n"
        "while not flag.exists(): time.sleep(0.05)\nprint(lr)"
    )
    nb = notebook(waits, parameters="lr = 0")
    order = sweep(desk, desk.order(nb), space={"grid": {"lr": [1, 2, 3]}})
    order = replace(order, folder=disk / "attempt")
    order.folder.mkdir()
    handle = desk.backend.start(order)
    eventually(lambda: "begins" in log(order))
    with (disk / "filler").open("wb", buffering=0) as filler, suppress(OSError):
        while filler.write(bytes(4096)):
            pass
    (order.home / "flag-1").touch()
    (order.home / "flag-2").touch()
    eventually(lambda: "the disk is full: the sweep waits for space" in log(order))
    assert states(order) == {1: "running"}
    (disk / "filler").unlink()
    eventually(lambda: states(order) == {1: "succeeded", 2: "succeeded", 3: "running"})
    (order.home / "flag-3").touch()
    assert wait_for_end(desk, order, handle) == 0
    assert [printed(trial(order, n)) for n in (1, 2, 3)] == [f"begins\n{n}\n" for n in (1, 2, 3)]


def test_a_kernel_with_threads_of_its_own_is_not_forked(desk: Desk) -> None:
    waits = "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()"
    nb = notebook(waits, "print(lr)", parameters="lr = 0")
    nb.cells[2].metadata["tags"] = ["carrel-share"]
    order = sweep(desk, desk.order(nb), space={"grid": {"lr": [1, 2]}})
    assert wait_for_end(desk, order, desk.backend.start(order)) == 0
    assert [printed(trial(order, n)) for n in (1, 2)] == ["1\n", "2\n"]
    assert "would end in a fork: each trial runs all cells" in log(order)


def test_a_kernel_with_a_module_that_no_fork_survives_is_not_forked(desk: Desk) -> None:
    stands_in = "import sys, types; sys.modules['polars'] = types.ModuleType('polars')"
    nb = notebook(stands_in, "print(lr)", parameters="lr = 0")
    nb.cells[2].metadata["tags"] = ["carrel-share"]
    order = sweep(desk, desk.order(nb), space={"grid": {"lr": [1, 2, 3]}})
    assert wait_for_end(desk, order, desk.backend.start(order)) == 0
    assert [printed(trial(order, n)) for n in (1, 2, 3)] == ["1\n", "2\n", "3\n"]
    assert log(order).count("the threads of polars would end in a fork") == 1


def test_the_explanation_names_the_modules_that_the_kernel_refuses() -> None:
    assert branch_side.NOT_FORKED == UNFORKED_MODULES


def test_the_runner_may_open_files_for_all_trials_that_run() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, before[1]))
        for wanted in (700, 600):
            allow_descriptors(wanted)
            assert resource.getrlimit(resource.RLIMIT_NOFILE) == (700, before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_shared_cell_that_ends_the_notebook_ends_it_for_all_its_trials(desk: Desk) -> None:
    nb = notebook("raise SystemExit", "print('never')", "print(lr)", parameters="lr = 0")
    order = sweep(desk, desk.order(nb), space={"grid": {"lr": [1, 2]}})
    assert wait_for_end(desk, order, desk.backend.start(order)) == 0
    assert states(order) == {1: "succeeded", 2: "succeeded"}
    assert not any("never" in printed(trial(order, n)) for n in (1, 2))


def test_trials_run_for_themselves_if_sharing_is_off(desk: Desk) -> None:
    nb = notebook("import os; pid = os.getpid()", "print(lr, pid)", parameters="lr = 0")
    order = sweep(desk, desk.order(nb), space={"grid": {"lr": [1, 2]}}, share=False, parallel=2)
    assert wait_for_end(desk, order, desk.backend.start(order)) == 0
    first, second = (printed(trial(order, n)).split() for n in (1, 2))
    assert first[0] == "1"
    assert second[0] == "2"
    assert first[1] != second[1]


def test_each_slot_has_its_own_devices(desk: Desk) -> None:
    waits = "open(f'up-{lr}', 'w').close()\nwhile not os.path.exists(f'up-{3 - lr}'): pass\n"
    cell = f"{waits}print(os.environ['CUDA_VISIBLE_DEVICES'], lr)"
    nb = notebook("import os", cell, parameters="lr = 0")
    order = sweep(desk, desk.order(nb, devices=2), space={"grid": {"lr": [1, 2]}}, parallel=2)
    assert wait_for_end(desk, order, desk.backend.start(order)) == 0
    assert {printed(trial(order, n)).split()[0] for n in (1, 2)} == {
        device.id for device in order.devices
    }


def test_a_trial_over_its_time_limit_fails_alone(desk: Desk) -> None:
    nb = notebook("import time", "time.sleep(lr)", parameters="lr = 0")
    order = sweep(desk, desk.order(nb), space={"grid": {"lr": [600, 0]}}, trial_seconds=1)
    wait_for_end(desk, order, desk.backend.start(order))
    assert states(order) == {1: "failed", 2: "succeeded"}
    assert "it took longer than the limit of a trial, 1 s, in cell 3" in log(order)


def test_a_killed_sweep_runs_no_finished_trial_again(desk: Desk) -> None:
    cell = (
        "open(f'ran-{lr}', 'a').write('x')\n"
        "if lr == 2 and not os.path.exists('once'): open('once', 'w'); os.mkfifo('wait'); "
        "open('wait').read()"
    )
    nb = notebook("import os", cell, "print(lr)", parameters="lr = 0")
    order = sweep(desk, desk.order(nb), space={"grid": {"lr": [1, 2, 3]}})
    handle = desk.backend.start(order)
    eventually((order.home / "wait").exists)
    desk.backend.stop(order.lease_id, handle)
    before = trial(order, 1)
    again = replace(order, folder=order.folder.with_name("again"), lease_id="again.1")
    again.folder.mkdir()
    desk.leases.append(again.lease_id)
    hand_over_trials(order.folder, again.folder)
    assert wait_for_end(desk, again, desk.backend.start(again)) == 0
    assert states(again) == dict.fromkeys((1, 2, 3), "succeeded")
    assert trial(again, 1) == before
    ran = {n: (order.home / f"ran-{n}").read_text() for n in (1, 2, 3)}
    assert ran == {1: "x", 2: "xx", 3: "x"}


def test_unseeded_trials_have_random_numbers_of_their_own(desk: Desk) -> None:
    nb = notebook(
        "import random, numpy as np",
        "print(random.random(), np.random.rand(), lr)",
        parameters="lr = 0",
    )
    order = sweep(desk, desk.order(nb), space={"list": [{"lr": 1}, {"lr": 2}]})
    assert wait_for_end(desk, order, desk.backend.start(order)) == 0
    first, second = (printed(trial(order, n)).split() for n in (1, 2))
    assert first[0] != second[0]
    assert first[1] != second[1]


def test_seeded_trials_go_on_with_the_numbers_of_the_shared_cells(desk: Desk) -> None:
    nb = notebook(
        "import random, numpy as np",
        "random.seed(1); np.random.seed(1)",
        "print(random.random(), np.random.rand(), lr)",
        parameters="lr = 0",
    )
    order = sweep(desk, desk.order(nb), space={"list": [{"lr": 1}, {"lr": 2}]})
    assert wait_for_end(desk, order, desk.backend.start(order)) == 0
    known = random.Random(1).random(), np.random.RandomState(1).rand()  # noqa: S311  # the test needs the seed
    for n in (1, 2):
        assert printed(trial(order, n)) == f"{known[0]} {known[1]} {n}\n"


def test_a_stopped_trial_ends_at_once_and_others_go_on(desk: Desk) -> None:
    cell = "open(f'ran-{x}', 'w').close()\nif x < 3: open(f'wait-{x}').read()"
    order = desk.order(notebook(cell, parameters="x = 0"))
    for number in (1, 2):
        os.mkfifo(order.home / f"wait-{number}")
    order = sweep(desk, order, space={"grid": {"x": [1, 2, 3]}}, parallel=2)
    handle = desk.backend.start(order)
    eventually(lambda: all((order.home / f"ran-{n}").exists() for n in (1, 2)))
    stop_trial(order.folder, 3)
    stop_trial(order.folder, 1)
    eventually(lambda: states(order)[1] == "stopped")
    (order.home / "wait-2").write_text("")
    assert wait_for_end(desk, order, handle) == 0
    assert states(order) == {1: "stopped", 2: "succeeded", 3: "stopped"}
    assert not (order.home / "ran-3").exists()
    assert desk.service.ended["message"] == "Ran 3 trials; 2 of them stopped."
