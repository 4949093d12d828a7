"""Execute some cells of a notebook in a kernel that stays, and fork it afterwards."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from typing import Any

from nbclient.exceptions import CellExecutionError, DeadKernelError

from ..attempt.log import drain
from ..kernels import branch_side
from ..kernels.fork_client import ForkRefused
from ..kernels.manager import JobKernelManager
from ..notebook.engine import Halted, NotebookClient, Stopped, text_of_value
from .branch_kernel import BranchKernelManager


class StageClient(NotebookClient):
    """Executes the cells of one stage; all its methods belong to one event loop."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._evaluation = asyncio.Lock()  # who waits for one reply drops all others

    async def open(self, environment: Mapping[str, str]) -> None:
        """Start a kernel of its own."""
        self.reset_execution_trackers()
        self.km = self.create_kernel_manager()
        assert isinstance(self.km, JobKernelManager)
        self.km.fork_server, self.km.note = self.fork_server, self.handle_raw_output
        inner, outer = os.pipe()
        try:
            await self.async_start_new_kernel(stdout=outer, stderr=outer, env=dict(environment))
        finally:
            os.close(outer)
            self._raw_output = drain(inner, self.handle_raw_output)
        await self._connect_to_kernel()
        self.install(branch_side)  # before a cell starts threads that a fork would miss

    async def open_branch(
        self, parent: StageClient, environment: Mapping[str, str], *, fresh: bool
    ) -> None:
        """Fork the kernel of a parent.

        Args:
            fresh: whether the fork has random numbers of its own.

        Raises:
            ForkRefused: the kernel cannot be forked.
        """
        self.reset_execution_trackers()
        self.km = manager = BranchKernelManager(kernel_name=self.kernel_name)
        manager.write_connection_file()
        try:
            manager.adopt(await parent.fork(manager.connection_file, environment, fresh=fresh))
        except BaseException:
            manager.cleanup_resources()
            self.km = None
            raise
        await self._connect_to_kernel()

    async def _connect_to_kernel(self) -> None:
        self.nb_man.attempt.process = self.process
        await self.async_start_new_kernel_client()
        self.nb_man.attempt.ready = True
        self._bound_kernel()

    async def fork(
        self, connection_file: str, environment: Mapping[str, str], *, fresh: bool
    ) -> int:
        """Return the process ID of a new fork. Raises ForkRefused."""
        if not getattr(self.km, "ipykernel", False):
            raise ForkRefused("only IPython kernels can be forked")
        call = f"carrel_branches.fork({connection_file!r}, {dict(environment)!r}, {fresh})"
        found = json.loads(await self._value(f"get_ipython().kernel.{call}"))
        if "pid" not in found:
            raise ForkRefused(found["problem"])
        return int(found["pid"])

    async def exit_of(self, pid: int) -> int | None:
        """Return the exit status of a fork, None if it is not known."""
        try:
            call = f"get_ipython().kernel.carrel_branches.exit_of({pid})"
            return int(await self._value(call))
        except (ForkRefused, DeadKernelError, ValueError):
            return None

    async def assign(self, code: str) -> None:
        """Execute code that is no cell."""
        assert self.kc is not None
        request = self.kc.execute(code, silent=True, store_history=False, allow_stdin=False)
        await self._async_poll_shell(request)

    async def run_cell(self, index: int) -> None:
        """Execute a cell of the notebook, and record how it ended."""
        manager, cell = self.nb_man, self.nb.cells[index]
        if manager.attempt.stopping.is_set():
            raise Stopped
        if manager.attempt.is_halted():
            raise Halted
        manager.cell_start(cell, cell_index=index)
        try:
            await self.async_execute_cell(cell, index)
        except CellExecutionError as error:
            manager.cell_exception(cell, cell_index=index, exception=error)
        manager.cell_complete(cell, cell_index=index)

    async def close(self) -> None:
        """End the kernel."""
        if self.km is not None:
            await self._async_cleanup_kernel()

    async def _value(self, expression: str) -> str:
        """Return the text of an expression. Raises ForkRefused if it raises an error."""
        async with self._evaluation:
            answer = await self.evaluate(expression)
        if answer.get("status") != "ok":
            raise ForkRefused(str(answer.get("evalue", "the kernel does not answer")))
        return text_of_value(answer)
