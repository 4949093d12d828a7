"""Widgets in jobs: a cell that has answered is never waited for (issue 28, item 29)."""

from __future__ import annotations

import asyncio
import json
import select
from pathlib import Path
from typing import Any

import pytest
import zmq
import zmq.asyncio
from jupyter_client.session import Session

from carrel.spawners.runner.kernels.client import WakefulChannel

from ..attempts import wait_for_end
from ..conftest import Desk
from ..notebooks import printed, read, statuses

WIDGETS = Path(__file__).parents[1] / "widget_notebooks"
"""Notebooks in the manner of the documentation of ipywidgets."""
ROUNDS = 50
SECONDS = 20


async def replies_during_a_send(folder: Path) -> list[str]:
    """Send a message in the moment in which the awaited reply arrives, several times."""
    context, session = zmq.asyncio.Context(), Session(key=b"")
    kernel = zmq.Context.shadow(context.underlying).socket(zmq.ROUTER)
    kernel.rcvtimeo = 1000 * SECONDS
    socket = context.socket(zmq.DEALER)
    try:
        kernel.bind(f"ipc://{folder / 'shell'}")
        socket.connect(f"ipc://{folder / 'shell'}")
        channel, plain = WakefulChannel(socket, session), zmq.Socket.shadow(socket.underlying)
        received = []
        for _ in range(ROUNDS):
            channel.send(session.msg("execute_request"))
            (identity, *_rest) = kernel.recv_multipart()
            waiting = asyncio.ensure_future(channel.get_msg())
            for _step in range(10):
                await asyncio.sleep(0)
            while select.select([socket.FD], [], [], 0)[0]:
                plain.get(zmq.EVENTS)
            session.send(kernel, "execute_reply", ident=identity)
            assert select.select([socket.FD], [], [], SECONDS)[0]
            # The event loop has not run since, and the send takes the signal.
            channel.send(session.msg("comm_msg"))
            received.append((await asyncio.wait_for(waiting, SECONDS))["msg_type"])
            kernel.recv_multipart()
        return received
    finally:
        kernel.close(linger=0)
        context.destroy(linger=0)


def test_a_reply_that_arrives_in_the_moment_of_a_send_is_received(tmp_path: Path) -> None:
    assert asyncio.run(replies_during_a_send(tmp_path)) == ["execute_reply"] * ROUNDS


@pytest.mark.parametrize("name", ["interactive", "output_widget", "widget_events"])
def test_a_notebook_with_widgets_runs_to_its_end(desk: Desk, name: str) -> None:
    order = desk.order((WIDGETS / f"{name}.ipynb").read_text())
    wait_for_end(desk, order, desk.backend.start(order))
    assert desk.service.ended["code"] == "succeeded"
    executed = read(order.folder / "output.ipynb")
    assert set(statuses(executed)) == {"completed"}
    assert printed(executed).splitlines()[-1].startswith("done")
    state: dict[str, Any] = executed.metadata.widgets["application/vnd.jupyter.widget-state+json"]
    shown = json.dumps([each["state"].get("outputs") for each in state["state"].values()])
    assert {
        "interactive": "4 + 0 = <b>4</b>",
        "output_widget": "the last line",
        "widget_events": "Label(value='8 to 9')",
    }[name] in shown
