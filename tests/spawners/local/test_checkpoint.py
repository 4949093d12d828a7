"""Checkpoint requests: the notice file, the signal, and the job's report. Real runners."""

from __future__ import annotations

import json

import psutil

from carrel.hub.records.notices import NoticeKind, StopNotice
from carrel.spawners.processes import lease_processes

from ...fake_service import eventually
from ..conftest import Desk
from ..notebooks import notebook, read

NOTICE = StopNotice(
    kind=NoticeKind.GUARANTEE,
    message="cs101 reclaims devices.",
    given_at=1.0,
    stops_at=121.0,
    group="cs101",
)
SAVES = """
import os, pathlib, signal
import carrel
def save(number, frame):
    pathlib.Path("checkpoint").write_text(carrel.notice().message)
    carrel.saved()
signal.signal(signal.SIGUSR1, save)
pathlib.Path("ready").touch()
while True:
    signal.pause()
"""
PRINTS = 2
DEAF = "touch ready; sleep 60"


def test_a_command_with_a_handler_saves_and_reports_it(desk: Desk) -> None:
    order = desk.order(command=("python", "-c", SAVES))
    handle = desk.backend.start(order)
    eventually((order.home / "ready").exists)
    desk.backend.request_checkpoint(order.lease_id, handle, order.folder, NOTICE)
    eventually((order.home / "checkpoint").exists)
    assert (order.home / "checkpoint").read_text() == "cs101 reclaims devices."
    desk.service.wait_for(lambda service: "saved" in service.kinds())
    assert json.loads((order.folder / "notice.json").read_text())["stops_at"] == 121.0
    assert desk.backend.stop(order.lease_id, handle)


def test_a_command_without_a_handler_is_not_interrupted(desk: Desk) -> None:
    order = desk.order(command=("sh", "-c", DEAF))
    handle = desk.backend.start(order)
    eventually((order.home / "ready").exists)
    before = {
        process.pid for process in lease_processes.scan({order.lease_id: handle})[order.lease_id]
    }
    desk.backend.request_checkpoint(order.lease_id, handle, order.folder, NOTICE)
    assert all(psutil.pid_exists(pid) for pid in before)
    desk.backend.withdraw_notice(order.folder)
    assert not (order.folder / "notice.json").exists()
    assert desk.backend.stop(order.lease_id, handle)
    assert desk.service.ended["code"] == "cancelled"


def test_the_signal_is_sent_once(desk: Desk) -> None:
    count = "import pathlib, signal, itertools\nn = itertools.count(1)\n" + SAVES.replace(
        'pathlib.Path("checkpoint").write_text(carrel.notice().message)',
        'pathlib.Path(f"checkpoint{next(n)}").touch()',
    )
    order = desk.order(command=("python", "-c", count))
    handle = desk.backend.start(order)
    eventually((order.home / "ready").exists)
    for _ in range(3):
        desk.backend.request_checkpoint(order.lease_id, handle, order.folder, NOTICE)
    eventually((order.home / "checkpoint1").exists)
    assert desk.backend.stop(order.lease_id, handle)
    assert not (order.home / "checkpoint2").exists()


def test_a_notebook_is_saved_in_the_middle_of_a_silent_cell(desk: Desk) -> None:
    order = desk.order(
        notebook(
            "print('first')",
            "import pathlib, time\nprint('before')\npathlib.Path('ready').touch()\ntime.sleep(60)",
        )
    )
    handle = desk.backend.start(order)
    eventually((order.home / "ready").exists)
    output = order.folder / "output.ipynb"
    desk.service.wait_for(lambda service: service.kinds().count("cell_output") == PRINTS)
    desk.backend.request_checkpoint(order.lease_id, handle, order.folder, NOTICE)
    eventually(lambda: "before" in output.read_text())
    status = [cell.metadata.papermill["status"] for cell in read(output).cells]
    assert status[-PRINTS:] == ["completed", "running"]
    assert desk.backend.stop(order.lease_id, handle)
