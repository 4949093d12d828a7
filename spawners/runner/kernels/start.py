"""Start kernels for notebooks, also before there is a notebook."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from nbclient import NotebookClient
from nbformat.v4 import new_notebook
from traitlets import default

from ....hub.attempts.notebook_repair import DEFAULT_KERNEL
from ..attempt.log import drain
from .manager import JobKernelManager

if TYPE_CHECKING:
    from jupyter_client.client import KernelClient
    from jupyter_client.manager import KernelManager

START_TIMEOUT_SECONDS: Final = 120
_STARTUP_FILES: Final = (
    ".ipython/profile_default/*config*",
    ".ipython/profile_default/startup/*.*py",
    ".ipython/profile_default/db/autorestore/*",
    f".local/share/jupyter/kernels/{DEFAULT_KERNEL}",
)
"""Files in a home that change how a Python kernel starts."""


class KernelStart(NotebookClient):
    """Starts the kernel of a notebook."""

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
        if self.km.is_ipython:
            kwargs["cwd"] = os.sep  # the kernel enters its folder later
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
    def process(self) -> subprocess.Popen[bytes] | None:
        """The kernel's process; None unless it runs on this machine."""
        process = getattr(getattr(self.km, "provisioner", None), "process", None)
        return cast("subprocess.Popen[bytes] | None", process)


class SpareKernel(KernelStart):
    """A Python kernel that has started and executed nothing, for one notebook.

    It is created and used in the same thread, because its connections belong to that thread's event
    loop.

    Attributes:
        listener: receives output that the kernel prints directly.
    """

    def __init__(self) -> None:
        super().__init__(
            new_notebook(),  # type: ignore[no-untyped-call]  # nbformat has no types
            kernel_name=DEFAULT_KERNEL,
            startup_timeout=START_TIMEOUT_SECONDS,
        )
        self.listener: Callable[[str], None] = lambda _: None
        self.km = self.create_kernel_manager()
        self.start_new_kernel()
        self.start_new_kernel_client()

    def handle_raw_output(self, text: str) -> None:
        self.listener(text)

    def hand_over(self, client: KernelStart, environment: Mapping[str, str], cwd: str) -> None:
        """Make this the client's kernel, with this environment and working folder."""
        self.listener = client.handle_raw_output
        client.km, client.kc = self.km, self.kc
        kernel = cast("KernelClient", self.kc)
        # The code defines no name in the notebook's namespace; its reply is not awaited.
        code = f"__import__('os').environ.update({dict(environment)!r})\n"
        code += f"__import__('os').chdir({cwd!r})"
        kernel.execute(code, silent=True, store_history=False, allow_stdin=False)

    def end(self) -> None:
        """Stop the kernel."""
        self.shutdown_kernel = "immediate"
        self._cleanup_kernel()


def can_use_spare(kernel: str, home: Path) -> bool:
    """Whether a kernel that was started without the home is equal to one started in it."""
    return kernel == DEFAULT_KERNEL and not any(
        any(home.glob(pattern)) for pattern in _STARTUP_FILES
    )
