"""Jobs in real containers run to their end and leave their files."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace

import pytest
from docker.errors import APIError

from carrel.hub.attempts import snapshots
from carrel.hub.interfaces.backend import ProcessState

from ..fake_service import eventually
from ..spawners.notebooks import notebook
from .kit import Site
from .outside import ADDRESS, PORT, outside_host

pytestmark = pytest.mark.docker


def test_a_notebook_runs_to_its_end_and_reports_to_the_service(site: Site) -> None:
    order = site.order(notebook("print(6 * 7)"), devices=site.backend.inventory()[:1])
    handle = site.backend.start(order)
    site.service.wait_for_event("ended")
    assert site.service.ended["code"] == "succeeded"
    assert handle.pid > 0
    lease = order.lease_id
    eventually(lambda: site.backend.status({lease: handle})[lease].life is ProcessState.DEAD)
    assert site.backend.status({lease: None})[lease].exit_status == 0
    executed = json.loads((order.folder / "output.ipynb").read_text())
    assert executed["cells"][-1]["outputs"][0]["text"] in ("42\n", ["42\n"])
    assert [event.kind for event in site.backend.journal(order.folder)] == site.service.kinds()


def test_a_failed_notebook_goes_on_in_a_new_container(site: Site) -> None:
    loads = "import time\ntime.sleep(0.2)\ndef double():\n    return 2 * value\nvalue = 21"
    order = site.order(notebook(loads, "print(valeu)"))
    site.backend.start(order)
    site.service.wait_for_event("ended")
    saved = snapshots.find(order.folder)
    assert saved is not None
    again = site.order(notebook(loads, "print(double())"))
    again.folder.mkdir(parents=True, exist_ok=True)
    snapshots.hand_over(saved, again.folder)
    site.backend.start(again)
    eventually(lambda: "42\n" in site.log(again))
    assert "the job goes on after 1 cell of an earlier execution" in site.log(again)


def test_a_job_without_the_internet_still_reports_to_the_service(site: Site) -> None:
    reaches = f"""
import socket
try:
    socket.create_connection(("{ADDRESS}", {PORT}), timeout=3).close()
    print("it is reached")
except OSError:
    print("it is not reached")
"""
    with outside_host(site.api, site.image):
        for internet, said in ((True, "it is reached"), (False, "it is not reached")):
            order = site.order(command=("python", "-c", reaches), internet=internet)
            site.backend.start(order)
            eventually(
                lambda order=order: (
                    site.backend.status({order.lease_id: None})[order.lease_id].life
                    is ProcessState.DEAD
                )
            )
            assert said in site.log(order)
    assert len(site.service.started) == 2


def test_the_value_of_a_secret_is_in_the_job_and_in_nothing_that_describes_it(site: Site) -> None:
    value = "tok-8f14e45fceea167a"
    site.service.secrets = {"files": {"KEY": value}, "variables": {"TOKEN": value}, "missing": ""}
    code = (
        "import os, time\n"
        "key = open(os.environ['CARREL_SECRETS'] + '/KEY').read()\n"
        "print(key == os.environ['TOKEN'], len(key), key, flush=True)\n"
        "open(os.environ['CARREL_OUTPUT_DIR'] + '/length', 'w').write(str(len(key)))\n"
        "while not os.path.exists('described'):\n"
        "    time.sleep(0.05)\n"
    )
    order = site.order(command=("python", "-c", code))
    order = replace(order, job=replace(order.job, secrets=("KEY:file", "TOKEN:env=TOKEN")))
    site.backend.start(order)
    eventually(lambda: "True 20 ***" in site.log(order))
    described = ""
    for each in site.api.containers(all=True):
        with contextlib.suppress(APIError):  # those of other jobs end and are removed meanwhile
            number = each["Id"]
            logs = site.api.logs(number).decode()
            described += json.dumps(site.api.inspect_container(number)) + logs
            described += json.dumps(site.api.top(number, ps_args="-eo pid,args"))
    assert order.lease_id in described
    assert "CARREL_SECRETS" in described, "the command of the job is among the processes"
    (order.home / "described").touch()
    site.service.wait_for_event("ended")
    files = [path for path in site.folder.rglob("*") if path.is_file()]
    assert order.folder / "files" / "length" in files
    for text in (described, str(site.service.events), *(f.read_text("latin-1") for f in files)):
        assert value not in text
