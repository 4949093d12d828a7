"""Manage the process of a job's kernel: command line, working folder and sockets."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import zmq
from jupyter_client.manager import AsyncKernelManager

from .client import JobKernelClient, kernel_context
from .provisioner import FORK_PROVISIONER, ForkProvisioner, JobProvisioner, split_command

_SOCKET: Final = "kernel"
_SOCKET_NAME_BYTES: Final = len(f"/{_SOCKET}-5")


class JobKernelManager(AsyncKernelManager):
    """Forks or starts IPython kernels, with sockets in a private folder.

    TCP ports are chosen before a kernel binds them, so that another process may take them in
    between. Kernels of other languages still get TCP ports, because some support nothing else.

    Attributes:
        fork_server: path of the socket of the owner's fork server; empty without one.
        note: receives lines for the job's log.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.context = kernel_context()
        self._created_context = True
        # Other accounts on this machine could read an unencrypted connection.
        if self.has_trait("transport_encryption") and zmq.has("curve"):
            self.transport_encryption = "auto"
        self.client_factory = JobKernelClient
        self.fork_server = ""
        self.note: Callable[[str], None] = lambda _: None
        self._sockets: Path | None = None
        if self.is_ipython:
            self._use_sockets()

    @property
    def is_ipython(self) -> bool:
        """Whether it is an IPython kernel that this manager starts itself."""
        words = [] if self.kernel_spec is None else self.kernel_spec.argv
        metadata = {} if self.kernel_spec is None else self.kernel_spec.metadata
        other = metadata.get("kernel_provisioner", {}).get("provisioner_name", FORK_PROVISIONER)
        return split_command(words) is not None and other == FORK_PROVISIONER

    async def _async_pre_start_kernel(self, **options: Any) -> Any:
        if self.is_ipython and self.provisioner is None:
            options.setdefault("kernel_id", uuid.uuid4().hex)
            self.provisioner = JobProvisioner(
                kernel_id=options["kernel_id"],
                kernel_spec=self.kernel_spec,
                parent=self,
                server=self.fork_server,
            )
        return await super()._async_pre_start_kernel(**options)

    async def _async_interrupt_kernel(self) -> None:
        # Before it shuts a kernel down, jupyter_client interrupts it, also when it is idle.
        if not self.shutting_down:
            await super()._async_interrupt_kernel()

    async def _async_wait(self, pollinterval: float = 0.1) -> None:
        if isinstance(self.provisioner, ForkProvisioner):
            await self.provisioner.wait_exit()
        await super()._async_wait(pollinterval)

    def cleanup_ipc_files(self) -> None:
        super().cleanup_ipc_files()
        if self._sockets is not None:
            with suppress(OSError):
                self._sockets.rmdir()

    def _use_sockets(self) -> None:
        try:
            folder = Path(tempfile.mkdtemp(prefix="carrel-kernel-"))
        except OSError:
            return  # the folder for temporary files is full or read-only
        if len(os.fsencode(folder)) + _SOCKET_NAME_BYTES > zmq.IPC_PATH_MAX_LEN:
            folder.rmdir()
            return
        self._sockets = folder
        self.transport, self.ip = "ipc", str(folder / _SOCKET)
