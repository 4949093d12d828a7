"""Start the kernels of notebooks."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any, Final, cast

from nbclient import NotebookClient
from traitlets import default

from ..attempt.log import drain
from .fork_client import ForkedProcess
from .manager import JobKernelManager

if TYPE_CHECKING:
    from jupyter_client.client import KernelClient
    from jupyter_client.manager import KernelManager

START_TIMEOUT_SECONDS: Final = 120


class KernelStart(NotebookClient):
    """Starts the kernel of a notebook.

    Attributes:
        fork_server: path of the socket of a fork server; empty without one.
    """

    fork_server = ""

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
            drain(inner, self.handle_raw_output)

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
