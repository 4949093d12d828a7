"""Start a runner before there is a job: in a warm container, or forked when there is one.

In a warm container, the runner does the slow steps in advance: its imports, and a fork server for
its kernel. It has no order, no home and no network yet. When the service has bound the attempt's
folder into the container, it writes to the wake-up pipe beside the folder, and the runner continues
as usual.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ...hub.attempts.spec import LOG, WAKE_PIPE, AttemptSpec
from ...hub.interfaces.backend_settings import COURSE_DATA
from ..processes.lease_processes import LEASE_VARIABLE
from .kernels import fork_servers
from .kernels.forkserver import parse_packages, write_packages

KNOWN_PACKAGES: Final = "CARREL_KNOWN_PACKAGES"
"""A variable with the packages that kernels of this image have used."""
WARM_BYTES: Final = 512 << 20
"""Memory that a warm container may need, with the packages that it has imported."""
_MINOR_FORMATS: Final = 6
"""Formats 4.0 to 4.5 of notebooks."""
_OUTPUTS: Final = (1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmRunner:
    """A runner that has started, with the fork server for its kernel.

    Attributes:
        socket: path of the server's socket.
    """

    server: subprocess.Popen[bytes]
    socket: Path

    def end_server(self) -> None:
        """End the server: the job has no kernel."""
        self.server.kill()
        self.server.wait()


def prepare_runner(folder: Path) -> WarmRunner:
    """Import the notebook libraries, start a fork server, and return when there is a job."""
    own = Path(tempfile.mkdtemp(prefix="carrel-fork-"))
    known = parse_packages(os.environ.pop(KNOWN_PACKAGES, ""))
    write_packages(str(own / fork_servers.PACKAGES), known)
    server = fork_servers.start(
        fork_servers.in_folder(replace(fork_servers.KERNEL_SETTINGS, memory=WARM_BYTES), own),
        interpreter=sys.executable,
        environment=os.environ,
    )
    load_all()
    wait_for_job(folder.with_name(WAKE_PIPE))
    return WarmRunner(server=server, socket=own / fork_servers.SOCKET)


def load_all() -> None:
    """Import what a notebook job needs, and compile and read what is kept for the next one."""
    from ipykernel import kernelspec  # noqa: F401, PLC0415  # for the list of kernels
    from IPython.core import interactiveshell  # noqa: F401, PLC0415  # for kernel specs
    from jupyter_client.provisioning.factory import KernelProvisionerFactory  # noqa: PLC0415
    from nbformat.validator import get_validator  # noqa: PLC0415

    from .notebook import attempt  # noqa: F401, PLC0415

    KernelProvisionerFactory.instance()  # lists entry points
    for minor in range(_MINOR_FORMATS):
        get_validator(4, minor)  # type: ignore[no-untyped-call]  # nbformat has no types


def wait_for_job(pipe_path: Path) -> None:
    """Block until a byte arrives; a check whether the runner is waiting writes none."""
    while True:
        with pipe_path.open("rb", buffering=0) as pipe:
            if pipe.read(1):
                return


def adopt_job(order: AttemptSpec, folder: Path) -> None:
    """Set the environment and open the log, which other runners get at their start."""
    os.environ.update(environment(order))
    descriptor = os.open(folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for output in _OUTPUTS:
        os.dup2(descriptor, output)
    os.close(descriptor)


def environment(order: AttemptSpec) -> Mapping[str, str]:
    """Return the variables that differ between jobs."""
    return {
        "HOME": order.home,
        "USER": order.owner,
        "LOGNAME": order.owner,
        LEASE_VARIABLE: order.lease_id,
        "CARREL_REQUEST": order.request_id,
        **({COURSE_DATA: order.course_data} if order.course_data else {}),
    }
