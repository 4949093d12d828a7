"""Manage the process of a job's kernel: command line, working folder and sockets."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import zmq
from jupyter_client.manager import AsyncKernelManager

from .client import JobKernelClient

MESSAGE_BYTES: Final = 64 << 20
"""Larger messages of a kernel are not received."""
_LAUNCHER_MODULE: Final = "ipykernel_launcher"
_LAUNCHER: Final = """
import os, sys
sys.path.remove("")
import ipykernel_launcher
from ipykernel import kernelapp
sys.argv[0] = ipykernel_launcher.__file__
os.chdir(%s)
kernelapp.launch_new_instance()
"""
"""Does the same as ``ipykernel_launcher``, but imports before it enters the notebook's folder.

The launcher removes the folder from the path too late: it would import a ``re.py`` or ``types.py``
of the folder.
"""
_SOCKET: Final = "kernel"
_SOCKET_NAME_BYTES: Final = len(f"/{_SOCKET}-5")


class JobKernelManager(AsyncKernelManager):
    """Starts IPython kernels outside of the notebook's folder, with sockets in a private folder.

    TCP ports are chosen before a kernel binds them, so that another process may take them in
    between. Kernels of other languages still get TCP ports, because some support nothing else.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # Other accounts on this machine could read an unencrypted connection.
        if self.has_trait("transport_encryption") and zmq.has("curve"):
            self.transport_encryption = "auto"
        self.client_factory = JobKernelClient
        self.context.setsockopt(zmq.MAXMSGSIZE, MESSAGE_BYTES)
        self._sockets: Path | None = None
        if self.is_ipython:
            self._use_sockets()

    @property
    def is_ipython(self) -> bool:
        """Whether the kernel is started by the launcher of IPython kernels."""
        words = [] if self.kernel_spec is None else self.kernel_spec.argv
        return ("-m", _LAUNCHER_MODULE) in pairwise(words)

    def format_kernel_cmd(self, extra_arguments: list[str] | None = None) -> list[str]:
        words = super().format_kernel_cmd(extra_arguments)
        if self.is_ipython:
            at = words.index(_LAUNCHER_MODULE)
            words[at - 1 : at + 1] = ["-c", _LAUNCHER % ascii(os.getcwd())]
        return words

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
