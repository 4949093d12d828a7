"""The client of a job's kernel: no message that has arrived is waited for."""

from __future__ import annotations

import time
from queue import Empty
from typing import Any, Final

import zmq
import zmq.asyncio
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.channels import AsyncZMQSocketChannel
from traitlets import Type, default

_ANSWER_SECONDS: Final = 1.0
_RECONNECT_MILLISECONDS: Final = 5
_QUEUED_MESSAGES: Final = 10_000
"""ZeroMQ drops messages of a kernel that is further ahead of its client; its default is 1,000."""
_FIRST_STATUS_SECONDS, _LAST_STATUS_SECONDS = 0.01, 0.2
"""How long to wait for the status after a reply: published messages may not be connected yet."""


def kernel_context() -> zmq.asyncio.Context:
    """Return a context whose sockets reconnect fast, and receive floods of messages.

    A kernel creates its sockets a moment later; ZeroMQ waits for 100 ms.
    """
    context = zmq.asyncio.Context()
    context.setsockopt(zmq.RECONNECT_IVL, _RECONNECT_MILLISECONDS)
    context.setsockopt(zmq.RCVHWM, _QUEUED_MESSAGES)
    return context


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

    @default("context")
    def _context_with_options(self) -> zmq.asyncio.Context:
        self._created_context = True
        return kernel_context()

    async def wait_for_ready(self, timeout: float | None = None) -> None:
        """Return as soon as the kernel has answered and its published messages arrive.

        jupyter_client waits for 200 ms without a message instead. Here the last message is known:
        the kernel is idle after the request.

        Raises:
            RuntimeError: the kernel has died, or has not answered in time.
        """
        ends = time.monotonic() + (float("inf") if timeout is None else timeout)
        patience = _FIRST_STATUS_SECONDS
        while not await self._answers(patience):
            patience = min(2 * patience, _LAST_STATUS_SECONDS)
            if not await self._async_is_alive():
                raise RuntimeError("Kernel died before replying to kernel_info")
            if time.monotonic() > ends:
                raise RuntimeError(f"Kernel didn't respond in {timeout:.0f} seconds")

    async def _answers(self, patience: float) -> bool:
        """Request the kernel's description; return whether reply and status have arrived.

        Args:
            patience: seconds to wait for the status.
        """
        request = self.kernel_info()
        try:
            while True:
                reply = await self._async_get_shell_msg(timeout=_ANSWER_SECONDS)
                if reply["parent_header"].get("msg_id") == request:
                    break
            self._handle_kernel_info_reply(reply)
            while True:
                message = await self._async_get_iopub_msg(timeout=patience)
                ours = message["parent_header"].get("msg_id") == request
                if ours and message["content"].get("execution_state") == "idle":
                    return True
        except Empty:
            return False
