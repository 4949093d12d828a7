"""Manage a kernel that another kernel has forked: it is no child of the runner."""

from __future__ import annotations

from ..kernels.fork_client import UNKNOWN_EXIT, WatchedProcess
from ..kernels.manager import JobKernelManager
from ..kernels.provisioner import ForkProvisioner


class GrandchildProcess(WatchedProcess):
    """A process whose exit status only its parent, another kernel, can tell."""

    def __init__(self, pid: int) -> None:
        try:
            super().__init__(pid)
        except ProcessLookupError:
            self._descriptor, self.returncode = -1, UNKNOWN_EXIT


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
