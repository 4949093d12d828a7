"""Start the kernels of notebooks, and notice their death."""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode
from traitlets import default

from ..attempt.log import drain
from .fork_client import ForkedProcess
from .manager import JobKernelManager

if TYPE_CHECKING:
    from jupyter_client.client import KernelClient
    from jupyter_client.manager import KernelManager

START_TIMEOUT_SECONDS: Final = 120
ALIVE_SECONDS: Final = 0.5
"""Pause between two checks that the kernel is alive."""
_QUIET_SECONDS, _LAST_OUTPUT_SECONDS = 0.1, 10.0
_PRINTED_SECONDS: Final = 1.0


class KernelStart(NotebookClient):
    """Starts the kernel of a notebook, and loses no output when it dies.

    Attributes:
        fork_server: path of the socket of a fork server; empty without one.
    """

    fork_server = ""
    _messages = 0
    _dead = False
    _raw_output: threading.Thread | None = None

    def handle_raw_output(self, text: str) -> None:
        """Handle output that the kernel's processes print directly, not as messages."""
        raise NotImplementedError

    @property
    def may_start_again(self) -> bool:
        """Whether a kernel that never answered may be replaced."""
        return True

    @default("kernel_manager_class")
    def _kernel_manager_class_default(self) -> type[KernelManager]:
        return JobKernelManager

    def start_new_kernel(self, **kwargs: Any) -> None:
        # Output that does not arrive as messages also counts towards the log's limit.
        inner, outer = os.pipe()
        assert isinstance(self.km, JobKernelManager)
        self.km.fork_server, self.km.note = self.fork_server, self.handle_raw_output
        try:
            super().start_new_kernel(**kwargs, stdout=outer, stderr=outer)
        finally:
            os.close(outer)
            self._raw_output = drain(inner, self.handle_raw_output)

    def start_new_kernel_client(self) -> KernelClient:
        """Connect to the kernel; start it once more if it never answered.

        The second start may succeed with other ports, or when the machine is less busy.
        """
        try:
            return self._connect()
        except RuntimeError as error:  # it has died or has not answered in time
            if not self.may_start_again:
                raise
            self.handle_raw_output(f"carrel: the kernel is started once more: {error}\n")
        self.km = self.create_kernel_manager()
        self.start_new_kernel()
        return self._connect()

    def _connect(self) -> KernelClient:
        client: KernelClient = super().start_new_kernel_client()
        return client

    @property
    def process(self) -> subprocess.Popen[bytes] | ForkedProcess | None:
        """The kernel's process; None unless it runs on this machine."""
        process = getattr(getattr(self.km, "provisioner", None), "process", None)
        return cast("subprocess.Popen[bytes] | ForkedProcess | None", process)

    def process_message(
        self, msg: dict[str, Any], cell: NotebookNode, cell_index: int
    ) -> NotebookNode | None:
        self._messages += 1
        return super().process_message(msg, cell, cell_index)

    def await_raw_output(self) -> None:
        """Wait until all raw output is handled; called when the kernel's processes have ended."""
        if self._raw_output is not None:
            self._raw_output.join(_PRINTED_SECONDS)

    async def _async_poll_output_msg(
        self, parent_msg_id: str, cell: NotebookNode, cell_index: int
    ) -> None:
        """Process the output of a cell, until the kernel is idle or no more arrives.

        nbclient cancels this ``iopub_timeout`` seconds after the reply, in case the message that
        the kernel is idle is missing; that much output may still wait.
        """
        poll = partial(super()._async_poll_output_msg, parent_msg_id, cell, cell_index)
        try:
            return await poll()
        except asyncio.CancelledError:
            if self._dead:
                raise
        processed = -1
        while processed != self._messages:
            processed = self._messages
            with suppress(TimeoutError):
                return await asyncio.wait_for(poll(), self.iopub_timeout)

    async def _async_poll_kernel_alive(self) -> None:
        try:
            while True:
                await asyncio.sleep(ALIVE_SECONDS)
                await self._async_check_alive()
        except DeadKernelError:
            self._dead = True
            await self._await_last_output()
            assert self.task_poll_for_reply is not None
            self.task_poll_for_reply.cancel()

    async def _await_last_output(self) -> None:
        """Wait until all messages of a dead kernel are processed; nbclient would drop them."""
        ends, processed = time.monotonic() + _LAST_OUTPUT_SECONDS, -1
        while processed != self._messages and time.monotonic() < ends:
            processed = self._messages
            await asyncio.sleep(_QUIET_SECONDS)
