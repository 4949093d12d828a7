"""Start a runner before there is a job, in a warm container.

The runner does the slow steps in advance: the imports, and the start of a kernel. It has no order,
no home and no network yet. When the service has bound the attempt's folder into the container, it
writes to the wake-up pipe beside the folder, and the runner continues as usual.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...hub.attempts.spec import LOG, WAKE_PIPE, AttemptSpec
from ...hub.interfaces.backend_settings import COURSE_DATA
from ..processes.lease_processes import LEASE_VARIABLE

if TYPE_CHECKING:
    from .kernels.start import SpareKernel

_OUTPUTS: Final = (1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmRunner:
    """A runner that has started.

    Attributes:
        worker: executor with the thread in which the kernel was started and must be used.
        spare: the kernel.
    """

    worker: ThreadPoolExecutor
    spare: SpareKernel


def worker() -> ThreadPoolExecutor:
    """Return an executor with one thread, which executes the job."""
    return ThreadPoolExecutor(1, thread_name_prefix="work")


def prepare_runner(folder: Path) -> WarmRunner:
    """Import the notebook libraries, start a kernel, and return when there is a job."""
    from .kernels.start import SpareKernel  # noqa: PLC0415
    from .notebook import attempt as execution  # noqa: F401, PLC0415  # imported ahead of the job

    executor = worker()
    runner = WarmRunner(worker=executor, spare=executor.submit(SpareKernel).result())
    wait_for_job(folder.with_name(WAKE_PIPE))
    return runner


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
