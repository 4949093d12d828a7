"""How kernels are started for notebooks, and one that starts before there is a notebook for it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import zmq
from nbclient import NotebookClient
from nbformat.v4 import new_notebook

from ..attempt.log import drain

if TYPE_CHECKING:
    from jupyter_client.client import KernelClient
    from jupyter_client.manager import KernelManager

DEFAULT_KERNEL: Final = "python3"
START_TIMEOUT_SECONDS: Final = 120
MESSAGE_BYTES: Final = 64 << 20
"""A larger message of a kernel is not even received."""
_OWN: Final = (
    ".ipython/profile_default/*config*",
    ".ipython/profile_default/startup/*.*py",
    ".ipython/profile_default/db/autorestore/*",
    f".local/share/jupyter/kernels/{DEFAULT_KERNEL}",
)
"""What in a home changes how a Python kernel starts."""


class KernelStart(NotebookClient):
    """Starts a kernel as every notebook gets it."""

    def printed_outside(self, text: str) -> None:
        """What the kernel's processes print past it."""
        raise NotImplementedError

    def create_kernel_manager(self) -> KernelManager:
        manager = super().create_kernel_manager()
        # Others have accounts on this machine too, and could listen to an open connection.
        if manager.has_trait("transport_encryption") and zmq.has("curve"):
            manager.transport_encryption = "auto"
        manager.context.setsockopt(zmq.MAXMSGSIZE, MESSAGE_BYTES)
        return manager

    def start_new_kernel(self, **kwargs: Any) -> None:
        # What does not come as a message must not get into the log past its limit.
        inner, outer = os.pipe()
        try:
            super().start_new_kernel(**kwargs, stdout=outer, stderr=outer)
        finally:
            os.close(outer)
            drain(inner, self.printed_outside)

    @property
    def process(self) -> subprocess.Popen[bytes] | None:
        """Only a kernel that runs as a process of this machine has one."""
        process = getattr(getattr(self.km, "provisioner", None), "process", None)
        return cast("subprocess.Popen[bytes] | None", process)


class Spare(KernelStart):
    """A Python kernel that has started and run nothing: for one notebook, or for none.

    Made and used in one and the same thread, whose event loop its connections belong to.

    Attributes:
        listener: whom to give what the kernel prints past its messages.
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

    def printed_outside(self, text: str) -> None:
        self.listener(text)

    def give_to(self, client: KernelStart, environment: Mapping[str, str], cwd: str) -> None:
        """Let it be the client's kernel, in this folder and environment."""
        self.listener = client.printed_outside
        client.km, client.kc = self.km, self.kc
        kernel = cast("KernelClient", self.kc)
        # It leaves no name behind; nobody waits for its answer.
        code = f"__import__('os').environ.update({dict(environment)!r})\n"
        code += f"__import__('os').chdir({cwd!r})"
        kernel.execute(code, silent=True, store_history=False, allow_stdin=False)

    def end(self) -> None:
        """It is not needed."""
        self.shutdown_kernel = "immediate"
        self._cleanup_kernel()


def starts_as_any(kernel: str, home: Path) -> bool:
    """Whether a kernel that started in this home now would be like one that has started."""
    return kernel == DEFAULT_KERNEL and not any(any(home.glob(each)) for each in _OWN)
