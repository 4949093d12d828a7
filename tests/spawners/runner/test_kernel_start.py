"""Kernels of many jobs that start together, and kernels that fail at their start."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from collections import deque
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from nbclient.exceptions import DeadKernelError
from nbformat.v4 import new_code_cell, new_notebook

from carrel.hub.attempts.spec import LOG
from carrel.hub.interfaces.backend import LaunchOrder
from carrel.spawners.runner.kernels.start import KernelStart

from ..attempts import wait_for_end
from ..conftest import Desk
from ..notebooks import notebook, printed, read

TRANSPORT = "from ipykernel.kernelapp import IPKernelApp\nprint(IPKernelApp.instance().transport)"
KERNEL = f"exec {shlex.quote(sys.executable)} -m ipykernel_launcher -f {{connection_file}}"


def run(desk: Desk, order: LaunchOrder) -> None:
    wait_for_end(desk, order, desk.backend.start(order))


def add_kernel(home: Path, script: str) -> None:
    """Add the kernel ``mine``, started by a shell script."""
    spec = home / ".local" / "share" / "jupyter" / "kernels" / "mine"
    spec.mkdir(parents=True)
    argv = ["/bin/sh", "-c", script]
    found = {"argv": argv, "display_name": "Mine", "language": "python"}
    (spec / "kernel.json").write_text(json.dumps(found))


def test_a_kernel_uses_sockets_that_no_other_process_can_take(desk: Desk) -> None:
    order = desk.order(notebook(TRANSPORT + "\nprint(IPKernelApp.instance().ip)"))
    run(desk, order)
    transport, address = printed(read(order.folder / "output.ipynb")).split()
    assert transport == "ipc"
    assert not Path(address).parent.exists()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_forty_jobs_that_start_together_all_succeed(desk: Desk) -> None:
    orders = [desk.order(notebook("print('done')")) for _ in range(40)]
    handles = [desk.backend.start(order) for order in orders]
    for order, handle in zip(orders, handles, strict=True):
        wait_for_end(desk, order, handle)
    assert [printed(read(order.folder / "output.ipynb")) for order in orders] == ["done\n"] * 40


def test_a_kernel_that_never_answered_is_started_once_more(desk: Desk) -> None:
    order = desk.order(notebook(TRANSPORT), kernel="mine")
    tries = desk.folder / "tries"
    add_kernel(order.home, f"echo >>{tries}; [ $(wc -l <{tries}) = 2 ] || exit 1; {KERNEL}")
    run(desk, order)
    assert desk.service.ended["code"] == "succeeded"
    assert printed(read(order.folder / "output.ipynb")) == "tcp\n"
    assert "the kernel is started once more: Kernel died" in (order.folder / LOG).read_text()


def test_a_kernel_that_never_starts_fails_the_job_after_two_tries(desk: Desk) -> None:
    order = desk.order(notebook(TRANSPORT), kernel="mine")
    tries = desk.folder / "tries"
    add_kernel(order.home, f"echo >>{tries}; exit 7")
    run(desk, order)
    assert desk.service.ended["code"] == "kernel_not_started"
    assert "exit status 7" in desk.service.ended["message"]
    assert len(tries.read_text()) == len("\n\n")


PRINTED = 200


class Arrived:
    """The channel of a kernel that has printed, died, and said nothing else."""

    def __init__(self) -> None:
        parent = {"msg_id": "the cell"}
        self.waiting = deque(
            {
                "msg_type": "stream",
                "header": {"msg_type": "stream"},
                "parent_header": parent,
                "content": {"name": "stdout", "text": f"{number}\n"},
            }
            for number in range(PRINTED)
        )

    async def get_msg(self, timeout: float | None = None) -> dict[str, Any]:
        await asyncio.sleep(0.001)  # as long as the runner needs for each message
        return self.waiting.popleft() if self.waiting else await asyncio.Future()


def test_output_that_has_arrived_when_the_kernel_dies_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("carrel.spawners.runner.kernels.start.ALIVE_SECONDS", 0.01)
    cell = new_code_cell("print many lines, and die")  # type: ignore[no-untyped-call]
    client = KernelStart(new_notebook(cells=[cell]))  # type: ignore[no-untyped-call]
    silent = SimpleNamespace(get_msg=lambda **_: asyncio.Future())
    client.kc = SimpleNamespace(
        execute=lambda *_, **__: "the cell",
        is_alive=lambda: False,
        shell_channel=silent,
        iopub_channel=Arrived(),
    )
    with pytest.raises(DeadKernelError):
        client.execute_cell(cell, 0)
    assert [output.text for output in cell.outputs] == [f"{number}\n" for number in range(PRINTED)]
