"""Jobs on this machine: real runners, real kernels, a service that can be down."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from nbformat import NotebookNode

from carrel.hub.attempts.spec import LOG
from carrel.hub.errors import BackendFailed
from carrel.hub.interfaces.backend import LaunchOrder, ProcessState
from carrel.hub.interfaces.backend_settings import BackendSettings
from carrel.hub.scheduling.model.snapshot import Health
from carrel.spawners.devices.simulated import simulated_devices
from carrel.spawners.local.backend import LocalBackend, create
from carrel.spawners.processes import lease_processes

from ...fake_service import eventually
from ...gang_orders import gang_orders
from ...odd_notebooks import ODD
from ..attempts import deadline, wait_for_end
from ..conftest import Desk, Driver
from ..fake_service import WAIT_SECONDS
from ..notebooks import notebook, printed, read, statuses

SLEEP = "import time; time.sleep(600)"


def output(order: LaunchOrder) -> NotebookNode:
    return read(order.folder / "output.ipynb")


def test_a_job_runs_to_its_end_and_reports_progress(desk: Desk) -> None:
    order = desk.order(
        notebook("print('lr is', lr)", "lr * 2", parameters="lr = 0.1"), parameters={"lr": 0.5}
    )
    handle = desk.backend.start(order)
    assert wait_for_end(desk, order, handle) == 0
    assert desk.service.started == [
        (order.lease_id, {"pid": handle.pid, "started_at": handle.started_at})
    ]
    assert desk.service.kinds() == [
        "cells",
        *("cell_started", "cell_finished"),
        *("cell_started", "cell_output", "cell_finished") * 2,
        "ended",
    ]
    events = [desk.service.events[number] for number in sorted(desk.service.events)]
    assert events[0]["data"]["cells"] == len(events[0]["data"]["hashes"]) == 3
    # The injected cell is the third of the output, and has no number.
    assert [e["data"] for e in events if e["kind"] == "cell_started"] == [
        {"index": 1, "number": 1},
        {"index": 3, "number": 2},
        {"index": 4, "number": 3},
    ]
    assert desk.service.ended == {
        "code": "succeeded",
        "message": "Ran 3 cells without an error.",
        "details": "",
    }
    assert [event.kind for event in desk.backend.journal(order.folder)] == desk.service.kinds()
    executed = output(order)
    assert statuses(executed) == ["completed"] * 4
    assert printed(executed) == "lr is 0.5\n"
    carrel = executed.metadata.carrel
    assert (carrel.outcome, carrel.cells, carrel.done) == ("succeeded", 3, 3)
    assert (carrel.request, carrel.epoch) == (order.request_id, 1)
    assert carrel.devices == ["Simulated GPU 0 (simulated)"]
    assert str(desk.folder) not in json.dumps(executed.metadata)
    log = (order.folder / "log.txt").read_text()
    assert "lr is 0.5\n1.0\n" in log
    assert order.token not in log


def test_case_6_the_environment_is_clean_and_names_only_the_leased_devices(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NVIDIA_VISIBLE_DEVICES", "all")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "secret")
    monkeypatch.setenv("CARREL_SECRET", "secret")
    order = desk.order(notebook("import os, json; print(json.dumps(dict(os.environ)))"))
    wait_for_end(desk, order, desk.backend.start(order))
    found = json.loads(printed(output(order)))
    assert "secret" not in found.values()
    assert order.token not in found.values()
    assert (
        found.items()
        >= {
            "CUDA_VISIBLE_DEVICES": order.devices[0].id,
            "NVIDIA_VISIBLE_DEVICES": "void",
            "CARREL_DEVICES": "Simulated GPU 0 (simulated)",
            "CARREL_LEASE": order.lease_id,
            "CARREL_STATE": str(desk.folder),
            "CARREL_REQUEST": order.request_id,
            "HOME": str(order.home),
            "USER": "student1",
        }.items()
    )


def test_files_of_an_attempt_are_private(desk: Desk) -> None:
    order = desk.order(notebook("1"))
    wait_for_end(desk, order, desk.backend.start(order))
    for name in ("order.json", "log.txt", "events.jsonl", "claim"):
        assert (order.folder / name).stat().st_mode & 0o077 == 0, name


def test_an_error_names_the_cell_as_users_count_it(desk: Desk) -> None:
    order = desk.order(
        notebook("x = 0", "print('before')\n1 / x", "print('never')", parameters="y = 1"),
        parameters={"y": 2},
    )
    assert wait_for_end(desk, order, desk.backend.start(order)) == 1
    ended = desk.service.ended
    assert ended["code"] == "cell_error"
    assert ended["message"] == "error in cell 3: ZeroDivisionError: division by zero"
    assert "1 / x" in ended["details"]
    assert "\x1b" not in ended["details"]
    executed = output(order)
    # The second is the injected one.
    assert statuses(executed) == ["completed"] * 3 + ["failed", "pending"]
    assert (executed.metadata.carrel.outcome, executed.metadata.carrel.done) == ("cell_error", 2)
    assert printed(executed) == "before\n"


def test_a_kernel_that_dies_is_reported_with_its_signal_and_no_cell_is_completed(
    desk: Desk,
) -> None:
    # A kernel that is killed takes with it what its own thread has not sent yet.
    killed = (
        "import os, pathlib\nprint('last words')\n"
        "log = pathlib.Path(os.environ['CARREL_STATE'], os.environ['CARREL_REQUEST'], 'log.txt')\n"
        "while 'last words' not in log.read_text(): pass\nos.kill(os.getpid(), 9)"
    )
    order = desk.order(notebook("1", killed, "print('never')"))
    wait_for_end(desk, order, desk.backend.start(order))
    assert desk.service.ended["code"] == "kernel_died"
    assert desk.service.ended["message"] == "kernel died in cell 2 (signal 9, SIGKILL)"
    # What the libraries of the runner say about it is not for the user.
    assert (order.folder / LOG).read_text() == (
        "1\nlast words\ncarrel: kernel died in cell 2 (signal 9, SIGKILL)\n"
    )
    executed = output(order)
    assert statuses(executed) == ["completed", "failed", "pending"]
    assert (executed.metadata.carrel.outcome, executed.metadata.carrel.done) == ("kernel_died", 1)


def test_a_kernel_that_exits_is_reported_with_its_status(desk: Desk) -> None:
    order = desk.order(notebook("import os; os._exit(3)"))
    wait_for_end(desk, order, desk.backend.start(order))
    assert desk.service.ended["message"] == "kernel died in cell 1 (exit status 3)"


def test_expected_errors_and_a_clean_exit_are_not_failures(desk: Desk) -> None:
    sheet = notebook("1 / 0", "raise SystemExit", "print('never')")
    sheet.cells[1].metadata["tags"] = ["raises-exception"]
    order = desk.order(sheet)
    assert wait_for_end(desk, order, desk.backend.start(order)) == 0
    assert desk.service.ended["code"] == "succeeded"
    assert desk.service.ended["message"] == "Ended itself in cell 2 of 3, without an error."
    assert statuses(output(order)) == ["completed", "failed", "pending"]


def test_a_call_of_input_is_explained(desk: Desk) -> None:
    order = desk.order(notebook("name = input('Your name? ')"))
    assert wait_for_end(desk, order, desk.backend.start(order)) == 1
    assert desk.service.ended["message"] == (
        "error in cell 1: it calls input(), but a job cannot ask for input. "
        'Use a parameter instead: a variable in a cell tagged "parameters".'
    )


@pytest.mark.parametrize(
    ("text", "kernel", "message"),
    [
        ("this is no notebook", "", "train.ipynb is not a notebook: it is not JSON"),
        ("", "klingon", 'the kernel "klingon" is not installed; installed are: '),
    ],
)
def test_a_job_that_cannot_start_says_why(desk: Desk, text: str, kernel: str, message: str) -> None:
    order = desk.order(text or notebook("1"), kernel=kernel)
    assert wait_for_end(desk, order, desk.backend.start(order)) == 1
    assert desk.service.ended["code"] == "invalid_job"
    assert message in desk.service.ended["message"]


@pytest.mark.parametrize(
    ("case", "kernel"),
    [
        ("format 3", ""),
        ("collapsed in a code cell", "Python3"),
        ("an id in format 4.4", "python"),
        ("odd, missing and duplicate ids", ""),
    ],
)
def test_a_notebook_that_papermill_runs_is_run(desk: Desk, case: str, kernel: str) -> None:
    """Item 30: also one that was queued before admission repaired it."""
    order = desk.order(ODD[case][0], kernel=kernel)
    assert wait_for_end(desk, order, desk.backend.start(order)) == 0
    assert printed(output(order)).startswith("ran\n")


def test_sigterm_is_a_loss_that_keeps_the_partial_output(desk: Desk) -> None:
    half = "print('half', flush=True); open('go').read()"
    order = desk.order(notebook("print('first')", half, "1"))
    os.mkfifo(order.home / "go")
    handle = desk.backend.start(order)
    with (order.home / "go").open("w"):  # opens once the cell has reached it
        os.kill(handle.pid, signal.SIGTERM)
        assert wait_for_end(desk, order, handle) == 5
    assert "ended" not in desk.service.kinds()
    executed = output(order)
    assert statuses(executed) == ["completed", "failed", "pending"]
    assert executed.metadata.carrel.outcome == "lost"
    assert printed(executed) == "first\nhalf\n"
    assert desk.backend.status({order.lease_id: None})[order.lease_id].life is ProcessState.DEAD


def test_stop_ends_a_kernel_that_ignores_interrupts_within_the_patience(desk: Desk) -> None:
    deaf = (
        "import signal, time\nwhile True:\n  try: time.sleep(9)\n  except KeyboardInterrupt: pass"
    )
    order = desk.order(notebook("print('first')", deaf))
    handle = desk.backend.start(order)
    desk.service.wait_for_event("cell_started", number=2)
    assert desk.backend.stop(order.lease_id, handle)
    assert statuses(output(order)) == ["completed", "failed"]
    assert output(order).metadata.carrel.outcome == "cancelled"


def test_case_24_a_killed_runner_leaves_its_partial_output(desk: Desk) -> None:
    order = desk.order(notebook("print('first')", SLEEP))
    handle = desk.backend.start(order)
    desk.service.wait_for_event("cell_started", number=2)
    kernels = psutil.Process(handle.pid).children(recursive=True)
    # A process that has just written a snapshot has no environment any more.
    eventually(
        lambda: (
            {
                lease_processes.lease_of_environment(kernel.pid)
                for kernel in psutil.Process(handle.pid).children(recursive=True)
            }
            == {order.lease_id}
        )
    )
    os.kill(handle.pid, signal.SIGKILL)
    assert desk.backend.stop(order.lease_id, handle)
    assert not any(lease_processes.alive(kernel) for kernel in kernels)
    executed = output(order)
    assert printed(executed) == "first\n"
    assert statuses(executed) == ["completed", "running"]
    assert executed.metadata.carrel.outcome == "running"
    assert [event.kind for event in desk.backend.journal(order.folder)][-1] == "cell_started"


def test_a_finished_cell_is_saved_before_the_next_one_runs(desk: Desk) -> None:
    kill = f"import os; os.kill(os.getppid(), {signal.SIGKILL:d})"
    order = desk.order(notebook("print('first')", kill))
    handle = desk.backend.start(order)
    runner = lease_processes.find(handle)
    assert runner is None or lease_processes.wait_gone([runner], deadline())
    assert desk.backend.stop(order.lease_id, handle)
    executed = output(order)
    assert printed(executed) == "first\n"
    assert statuses(executed) == ["completed", "running"]
    told = [event.kind for event in desk.backend.journal(order.folder)]
    assert told[-3:] == ["cell_output", "cell_finished", "cell_started"]


def test_a_kernel_does_not_outlive_its_runner(desk: Desk) -> None:
    order = desk.order(notebook(SLEEP))
    handle = desk.backend.start(order)
    desk.service.wait_for_event("cell_started", number=1)
    kernels = psutil.Process(handle.pid).children(recursive=True)
    os.kill(handle.pid, signal.SIGKILL)
    assert lease_processes.wait_gone(kernels, deadline())


def test_a_finished_job_leaves_no_process_behind(desk: Desk) -> None:
    # A daemon: its parent is gone and its environment is empty.
    daemon = "import subprocess; subprocess.run('env -i setsid sleep 600 >&- 2>&- & echo $!', "
    order = desk.order(notebook(daemon + "shell=True, stdout=open('pid', 'w'))"))
    handle = desk.backend.start(order)
    assert wait_for_end(desk, order, handle) == 0
    left = int((order.home / "pid").read_text())
    assert not any(
        lease_processes.alive(each) for each in psutil.process_iter() if each.pid == left
    )


def test_case_2_a_second_start_of_the_same_lease_adopts_the_first(desk: Desk) -> None:
    desk.service.status = 503
    order = desk.order(notebook("open('ran', 'a').write('x')"))
    handle = desk.backend.start(order)
    settings = BackendSettings(state=desk.folder, service_url=desk.service.url, simulated_devices=2)
    restarted = LocalBackend(settings, node="node")
    assert restarted.status({order.lease_id: None})[order.lease_id].life is ProcessState.ALIVE
    assert restarted.start(order) == handle
    desk.service.wait_for(lambda service: service.asked > 0)  # the first one has the claim
    second = subprocess.run(
        [sys.executable, "-m", "carrel.spawners.runner", str(order.folder)],
        check=False,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
    )
    desk.service.status = 200
    wait_for_end(desk, order, handle)
    assert (second.returncode, "already has a runner" in second.stdout) == (3, True)
    assert (order.home / "ran").read_text() == "x"
    with pytest.raises(BackendFailed, match="has run before and has ended"):
        restarted.start(order)


def test_an_adopted_runner_uses_the_token_of_the_second_start(desk: Desk) -> None:
    desk.service.status = 503
    order = desk.order(notebook("print('ran')"))
    handle = desk.backend.start(order)
    desk.service.wait_for(lambda service: service.asked > 0)
    assert desk.backend.start(replace(order, token="renewed")) == handle
    desk.service.tokens = {"renewed"}
    desk.service.status = 200
    assert wait_for_end(desk, order, handle) == 0
    assert printed(output(order)) == "ran\n"


@pytest.mark.parametrize("status", [403, 404, 409])
def test_case_10_a_fenced_claim_executes_nothing(desk: Desk, status: int) -> None:
    desk.service.status = status
    order = desk.order(notebook("open('ran', 'w')"))
    assert wait_for_end(desk, order, desk.backend.start(order)) == 4
    assert not (order.home / "ran").exists()
    assert not (order.folder / "output.ipynb").exists()
    assert f"may not run: {status}" in (order.folder / "log.txt").read_text()


def test_case_10_a_lease_that_is_fenced_later_stops_the_execution(desk: Desk) -> None:
    order = desk.order(notebook(SLEEP))
    handle = desk.backend.start(order)
    desk.service.wait_for_event("cells")
    desk.service.status = 409
    assert wait_for_end(desk, order, handle) == 4
    assert output(order).metadata.carrel.outcome == "lost"
    assert "ended" not in [event.kind for event in desk.backend.journal(order.folder)]


def test_events_wait_for_a_service_that_is_away(desk: Desk) -> None:
    order = desk.order(notebook("open('go').read()", "2"))
    os.mkfifo(order.home / "go")
    handle = desk.backend.start(order)
    desk.service.wait_for_event("cell_started", number=1)
    desk.service.down()
    (order.home / "go").write_text("")
    # Unlike the service, the file system is always available.
    journal = order.folder / "events.jsonl"
    process = psutil.Process(handle.pid)
    while b'"ended"' not in journal.read_bytes() and lease_processes.alive(process):
        lease_processes.wait_gone([process], 0)
    desk.service.up()
    wait_for_end(desk, order, handle)
    assert sorted(desk.service.events) == list(range(1, 9))
    assert desk.service.ended["code"] == "succeeded"


def test_undelivered_events_are_in_the_journal(desk: Desk) -> None:
    order = desk.order(notebook("open('go').read()"))
    os.mkfifo(order.home / "go")
    handle = desk.backend.start(order)
    desk.service.wait_for_event("cell_started", number=1)
    desk.service.down()
    (order.home / "go").write_text("")
    assert wait_for_end(desk, order, handle) == 0
    journal = order.folder / "events.jsonl"
    with journal.open("ab") as file:
        file.write(b'{"seq": 99, "at": 1.0, "ki')
    assert [event.kind for event in desk.backend.journal(order.folder)] == [
        "cells",
        "cell_started",
        "cell_output",
        "cell_finished",
        "ended",
    ]


def test_the_output_is_readable_while_the_notebook_runs(desk: Desk) -> None:
    cells = ["print('x' * 100_000)"] * 8
    order = desk.order(notebook(*cells))
    handle = desk.backend.start(order)
    process = psutil.Process(handle.pid)
    path = order.folder / "output.ipynb"
    seen = set()
    while lease_processes.alive(process):
        if path.exists():
            seen.add(tuple(statuses(read(path))))  # raises on a torn file
        lease_processes.wait_gone([process], 0)
    assert wait_for_end(desk, order, handle) == 0
    assert len(seen) > 1
    assert [name.name for name in order.folder.glob(".*")] == []


def test_a_failed_start_shows_the_systems_message(desk: Desk) -> None:
    order = desk.order(notebook("1"))
    order.home.rmdir()
    with pytest.raises(BackendFailed, match="No such file or directory"):
        desk.backend.start(order)
    order.home.mkdir()


def test_the_kernels_of_a_home_are_those_that_its_jobs_can_use(desk: Desk) -> None:
    order = desk.order(notebook("print('mine')"), kernel="mine")
    spec = order.home / ".local" / "share" / "jupyter" / "kernels" / "mine"
    spec.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    found = {"argv": command, "display_name": "Mine", "language": "python"}
    (spec / "kernel.json").write_text(json.dumps(found))
    assert desk.backend.kernels(order.home) >= {"mine", "python3"}
    assert "mine" not in desk.backend.kernels(desk.folder / "another")
    assert wait_for_end(desk, order, desk.backend.start(order)) == 0
    assert printed(output(order)) == "mine\n"


def test_simulated_devices_replace_the_driver(tmp_path: Path) -> None:
    settings = BackendSettings(state=tmp_path, service_url="http://x", simulated_devices=2)
    backend = create(settings)
    node = backend.inventory()[0].node
    assert backend.inventory() == simulated_devices(node, 2)


def test_case_7_a_device_with_a_foreign_process_is_busy_and_says_why(
    driver: Driver,
    tmp_path: Path,
) -> None:
    backend = create(BackendSettings(state=tmp_path, service_url="http://x"))
    stranger = subprocess.Popen(["sleep", "600"], env={})
    ours = subprocess.Popen(["sleep", "600"], env={"CARREL_LEASE": "j-1.1"})
    try:
        driver(GPUS=3, PIDS=f"0:{stranger.pid},1:{ours.pid}")
        first, second, third = backend.inventory()
        assert first.health is Health.BUSY
        assert first.why == (
            f"in use by a process that Carrel did not start (pid {stranger.pid}, sleep)"
        )
        assert (second.health, third.health) == (Health.OK, Health.OK)
    finally:
        for child in (stranger, ours):
            child.kill()
            child.wait()


def test_case_7_a_process_that_cannot_be_seen_counts_from_the_second_time(
    driver: Driver,
    tmp_path: Path,
) -> None:
    backend = create(BackendSettings(state=tmp_path, service_url="http://x"))
    driver(GPUS=1, PIDS=f"0:{2**22 + 1}")
    assert [backend.inventory()[0].health for _ in range(2)] == [Health.OK, Health.BUSY]


def test_the_runners_of_a_gang_that_has_ended_are_reaped(desk: Desk) -> None:
    """Each one that is not would keep an entry in the table of processes, and descriptors."""
    order = desk.order(command=("true",), devices=0)
    orders = gang_orders(order, 2)
    desk.service.members = 2
    handles = desk.backend.start_gang(orders)
    lease = order.lease_id
    runners = {handle.pid for handle in handles.values()}

    def all_reaped() -> bool:
        """A runner that ends between the look at its exit and that at processes is reaped next."""
        dead = desk.backend.status({lease: None})[lease].life is ProcessState.DEAD
        return dead and not runners & {child.pid for child in psutil.Process().children()}

    eventually(all_reaped)
