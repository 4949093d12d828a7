"""Manage a kernel that another kernel has forked: it is no child of the runner."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
from contextlib import suppress
from typing import Final

from ..kernels.manager import JobKernelManager
from ..kernels.provisioner import ForkProvisioner

_UNKNOWN_EXIT: Final = 255


class GrandchildProcess:
    """A process whose exit status only its parent can tell, with the interface of ``Popen``."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._lock = threading.Lock()
        try:
            self._descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            self._descriptor, self.returncode = -1, _UNKNOWN_EXIT

    def poll(self) -> int | None:
        with self._lock:
            if self.returncode is None and self._has_ended(0.0):
                self.returncode = _UNKNOWN_EXIT
                os.close(self._descriptor)
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return a status. Raises subprocess.TimeoutExpired after ``timeout`` seconds."""
        if self.returncode is None:
            self._has_ended(timeout)
        status = self.poll()
        if status is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        return status

    def send_signal(self, number: int) -> None:
        with self._lock:
            if self.returncode is None:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._descriptor, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def _has_ended(self, seconds: float | None) -> bool:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        return bool(poll.poll(None if seconds is None else seconds * 1000))


class BranchProvisioner(ForkProvisioner):
    """Takes over a process that runs already."""

    def adopt(self, pid: int) -> None:
        self.process = GrandchildProcess(pid)
        self.pid = self.pgid = pid


class BranchKernelManager(JobKernelManager):
    """Writes a connection file first; ``adopt`` then tells it the process of the kernel."""

    def adopt(self, pid: int) -> None:
        provisioner = BranchProvisioner(
            kernel_id=str(pid), kernel_spec=self.kernel_spec, parent=self
        )
        provisioner.adopt(pid)
        self.provisioner = provisioner
