"""Start kernels for notebooks, also ahead of the notebook that will use them."""

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
"""Larger messages of a kernel are not received."""
_STARTUP_FILES: Final = (
    ".ipython/profile_default/*config*",
    ".ipython/profile_default/startup/*.*py",
    ".ipython/profile_default/db/autorestore/*",
    f".local/share/jupyter/kernels/{DEFAULT_KERNEL}",
)
"""Files in a home that change how a Python kernel starts."""
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
"""Does what ``ipykernel_launcher`` does, but imports before it enters the notebook's folder.

The launcher itself removes the folder from the path too late: it would import the folder's
``re.py`` or ``types.py``.
"""


class KernelStart(NotebookClient):
    """Starts a kernel in the way that every notebook gets it."""

    def handle_raw_output(self, text: str) -> None:
        """Take what the kernel's processes print directly, not as messages."""
        raise NotImplementedError

    def create_kernel_manager(self) -> KernelManager:
        manager = super().create_kernel_manager()
        # Other accounts on this machine could listen to an unencrypted connection.
        if manager.has_trait("transport_encryption") and zmq.has("curve"):
            manager.transport_encryption = "auto"
        manager.context.setsockopt(zmq.MAXMSGSIZE, MESSAGE_BYTES)
        return manager

    def start_new_kernel(self, **kwargs: Any) -> None:
        # Output that does not arrive as messages counts towards the log's limit, too.
        inner, outer = os.pipe()
        if self._isolate_imports(os.getcwd()):
            kwargs["cwd"] = os.sep
        try:
            super().start_new_kernel(**kwargs, stdout=outer, stderr=outer)
        finally:
            os.close(outer)
            drain(inner, self.handle_raw_output)

    def _isolate_imports(self, folder: str) -> bool:
        """Let an IPython kernel enter its folder only when it has imported its modules."""
        assert self.km is not None
        spec = self.km.kernel_spec
        words = [] if spec is None else list(spec.argv)
        if spec is None or _LAUNCHER_MODULE not in words:
            return False
        at = words.index(_LAUNCHER_MODULE)
        if words[at - 1] != "-m":
            return False
        spec.argv = [*words[: at - 1], "-c", _LAUNCHER % ascii(folder), *words[at + 1 :]]
        return True

    @property
    def process(self) -> subprocess.Popen[bytes] | None:
        """The kernel's process; None unless it runs on this machine."""
        process = getattr(getattr(self.km, "provisioner", None), "process", None)
        return cast("subprocess.Popen[bytes] | None", process)


class Spare(KernelStart):
    """A Python kernel that has started and run nothing, for one notebook.

    It is made and used in the same thread, because its connections belong to that thread's event
    loop.

    Attributes:
        listener: takes what the kernel prints directly.
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
        """Make it the client's kernel, with this environment and working folder."""
        self.listener = client.handle_raw_output
        client.km, client.kc = self.km, self.kc
        kernel = cast("KernelClient", self.kc)
        # This leaves no name behind, and its reply is not waited for.
        code = f"__import__('os').environ.update({dict(environment)!r})\n"
        code += f"__import__('os').chdir({cwd!r})"
        kernel.execute(code, silent=True, store_history=False, allow_stdin=False)

    def end(self) -> None:
        """Stop the kernel: it is not needed."""
        self.shutdown_kernel = "immediate"
        self._cleanup_kernel()


def can_use_spare(kernel: str, home: Path) -> bool:
    """Whether a kernel started in this home now would be the same as one started before."""
    return kernel == DEFAULT_KERNEL and not any(any(home.glob(each)) for each in _STARTUP_FILES)
