"""The local engine forks runners and kernels, from the second job of a user on."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from carrel.hub.attempts.journal import read_journal
from carrel.hub.interfaces.backend import LaunchOrder, ProcessState
from carrel.hub.records.json_value import Json
from carrel.hub.records.leases import Handle
from carrel.spawners.local.backend import LocalBackend
from carrel.spawners.processes import lease_processes
from carrel.spawners.runner.kernels.fork_client import listens

from ...fake_service import eventually
from ..attempts import wait_for_end
from ..conftest import Desk
from ..notebooks import notebook, printed, read

PARENT = "import os\nprint('forkserver' in open(f'/proc/{os.getppid()}/cmdline').read())"


@pytest.fixture
def warm_desk(desk: Desk) -> Iterator[Desk]:
    """A desk whose backend has fork servers, after the first job of the user."""
    desk.backend = LocalBackend(desk.settings, node="node", warm=True)
    order = desk.order(notebook(PARENT))
    assert wait_for_end(desk, order, desk.backend.start(order)) == 0
    eventually(lambda: sum(map(listens, sockets(desk))) == 2)
    yield desk
    desk.backend.close()
    eventually(lambda: not any(map(listens, sockets(desk))))


def ended(order: LaunchOrder) -> Json:
    return read_journal(order.folder / "events.jsonl")[-1].data["code"]


def sockets(desk: Desk) -> list[Path]:
    return list((desk.settings.state / "fork").glob("*/fork"))


def run(desk: Desk, order: LaunchOrder) -> int | None:
    return wait_for_end(desk, order, desk.backend.start(order))


def is_forked(handle: Handle) -> bool:
    process = lease_processes.find(handle)
    parent = process.parent() if process is not None else None
    return parent is not None and any("forkserver" in word for word in parent.cmdline())


def test_runner_and_kernel_are_forked(warm_desk: Desk) -> None:
    order = warm_desk.order(notebook(PARENT, "import time\ntime.sleep(0.3)"))
    handle = warm_desk.backend.start(order)
    assert is_forked(handle)
    assert wait_for_end(warm_desk, order, handle) == 0
    assert printed(read(order.folder / "output.ipynb")) == "True\n"
    assert ended(order) == "succeeded"
    failing = warm_desk.order(notebook("1 / 0"))
    assert run(warm_desk, failing) == 1
    command = warm_desk.order(command=("sh", "-c", "echo $CARREL_LEASE; exit 3"))
    assert run(warm_desk, command) == 1
    assert f"{command.lease_id}\n" in (command.folder / "log.txt").read_text()


def test_a_job_with_a_device_sees_it_in_its_forked_kernel(warm_desk: Desk) -> None:
    names = "CUDA_VISIBLE_DEVICES", "CARREL_LEASE", "CARREL_REQUEST", "HOME"
    order = warm_desk.order(notebook(f"import os\nprint([os.environ.get(n) for n in {names}])"))
    assert run(warm_desk, order) == 0
    devices = ",".join(device.id for device in order.devices)
    expected = [devices, order.lease_id, order.request_id, str(order.home)]
    assert printed(read(order.folder / "output.ipynb")) == f"{expected}\n"


def test_all_processes_of_a_forked_attempt_belong_to_its_lease(warm_desk: Desk) -> None:
    order = warm_desk.order(notebook("open('here', 'w').close()\nimport time\ntime.sleep(600)"))
    handle = warm_desk.backend.start(order)
    eventually((order.home / "here").exists)
    found = lease_processes.scan({order.lease_id: None}, state=warm_desk.settings.state)
    assert len(found[order.lease_id]) == 2  # the runner and the kernel
    assert warm_desk.backend.stop(order.lease_id, handle)
    assert not any(process.is_running() for process in found[order.lease_id])


def test_a_kernel_ends_with_its_runner(warm_desk: Desk) -> None:
    order = warm_desk.order(notebook("open('here', 'w').close()\nimport time\ntime.sleep(600)"))
    handle = warm_desk.backend.start(order)
    eventually((order.home / "here").exists)
    os.kill(handle.pid, signal.SIGKILL)
    eventually(
        lambda: (
            warm_desk.backend.status({order.lease_id: handle})[order.lease_id].life
            is ProcessState.DEAD
        )
    )
    status = warm_desk.backend.status({order.lease_id: handle})[order.lease_id]
    assert status.exit_status == -signal.SIGKILL


def test_a_job_survives_the_servers(warm_desk: Desk) -> None:
    waiting = (
        "open('here', 'w').close()\nimport os, time\n"
        "while not os.path.exists('go'):\n    time.sleep(0.01)"
    )
    order = warm_desk.order(notebook(waiting, "print('went on')"))
    handle = warm_desk.backend.start(order)
    eventually((order.home / "here").exists)
    for process in servers(warm_desk):
        process.kill()
    (order.home / "go").touch()
    wait_for_end(warm_desk, order, handle)
    assert ended(order) == "succeeded"
    # The next job starts new servers.
    assert run(warm_desk, warm_desk.order(notebook(PARENT))) == 0
    eventually(lambda: sum(map(listens, sockets(warm_desk))) == 2)


def servers(desk: Desk) -> list[psutil.Process]:
    found = [
        (process, " ".join(process.info["cmdline"] or ()))
        for process in psutil.process_iter(["cmdline"])
    ]
    state = str(desk.settings.state)
    return [process for process, words in found if "forkserver" in words and state in words]


def test_the_memory_limit_holds_for_a_forked_kernel(warm_desk: Desk) -> None:
    order = warm_desk.order(
        notebook("data = bytearray(500 << 20)\nimport time\ntime.sleep(600)"),
        memory_bytes=300 << 20,
    )
    assert run(warm_desk, order) == 1
    assert ended(order) == "out_of_memory"


def test_users_do_not_share_a_server(warm_desk: Desk) -> None:
    order = replace(warm_desk.order(notebook(PARENT)), owner="student2")
    assert run(warm_desk, order) == 0
    eventually(lambda: sum(map(listens, sockets(warm_desk))) == 3)
