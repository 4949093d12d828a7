"""The client of a job's kernel: no message that has arrived is waited for."""

from __future__ import annotations

from typing import Any

import zmq
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.channels import AsyncZMQSocketChannel
from traitlets import Type


class WakefulChannel(AsyncZMQSocketChannel):
    """A channel on which a send does not hide a message from a receive that waits.

    ZeroMQ signals a message once, by its file descriptor, and any call of the socket takes the
    signal. jupyter_client sends past the asyncio socket, so that the event loop would not learn of
    a message that arrived just before. nbclient does this with the state of each Output widget,
    while it waits for the reply of the cell.
    """

    def send(self, msg: dict[str, Any]) -> None:
        super().send(msg)
        if self.socket is not None:
            self.socket.get(zmq.EVENTS)  # wakes the receive if a message is there


class JobKernelClient(AsyncKernelClient):
    """Connects to a kernel by channels that lose no wake-up."""

    shell_channel_class = Type(WakefulChannel)
    stdin_channel_class = Type(WakefulChannel)
    control_channel_class = Type(WakefulChannel)
