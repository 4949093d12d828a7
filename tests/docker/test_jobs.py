"""Jobs in real containers: they run to their end, and what they leave is where it belongs."""

from __future__ import annotations

import json

import pytest

from carrel.hub.ports.backend import Life

from ..fake_service import eventually
from ..spawners.notebooks import notebook
from .kit import Site

pytestmark = pytest.mark.docker


def test_a_notebook_runs_to_its_end_and_tells_the_service(site: Site) -> None:
    order = site.order(notebook("print(6 * 7)"), devices=site.backend.inventory()[:1])
    handle = site.backend.start(order)
    site.service.wait_for_event("ended")
    assert site.service.ended["code"] == "succeeded"
    assert handle.pid > 0
    lease = order.lease_id
    eventually(lambda: site.backend.look({lease: handle})[lease].life is Life.DEAD)
    assert site.backend.look({lease: None})[lease].exit_status == 0
    executed = json.loads((order.folder / "output.ipynb").read_text())
    assert executed["cells"][-1]["outputs"][0]["text"] in ("42\n", ["42\n"])
    assert [event.kind for event in site.backend.journal(order.folder)] == site.service.kinds()
