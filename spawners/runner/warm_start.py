"""A runner that is ready before there is a job: in a container that waits for whoever comes first.

What a notebook waits for otherwise is done already: the imports, and the start of a kernel. There
is no order yet, no home and no network. Then the service puts the attempt's folder in its place
and rings the bell, a pipe beside it, and from there on all goes as ever.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...hub.attempts.spec import BELL, LOG, AttemptSpec
from ...hub.interfaces.backend_settings import COURSE_DATA
from ..processes.lease_processes import LEASE_VARIABLE

if TYPE_CHECKING:
    from .kernels.start import Spare

_OUTPUTS: Final = (1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmRunner:
    """Attributes:
    worker: one thread, in which the kernel was started and has to be used.
    """

    worker: ThreadPoolExecutor
    spare: Spare


def worker() -> ThreadPoolExecutor:
    """The thread that executes."""
    return ThreadPoolExecutor(1, thread_name_prefix="work")


def make_ready(folder: Path) -> WarmRunner:
    """Do what can be done, and return when the bell rings."""
    from .kernels.start import Spare  # noqa: PLC0415
    from .notebook import execution  # noqa: F401, PLC0415  # here, and not when the job has come

    mine = worker()
    ready = WarmRunner(worker=mine, spare=mine.submit(Spare).result())
    wait_for_job(folder.with_name(BELL))
    return ready


def wait_for_job(bell: Path) -> None:
    """Until something is written; who only looks whether somebody listens writes nothing."""
    while True:
        with bell.open("rb", buffering=0) as pipe:
            if pipe.read(1):
                return


def adopt_job(order: AttemptSpec, folder: Path) -> None:
    """Take on the environment and the log that a runner is started with otherwise."""
    os.environ.update(environment(order))
    descriptor = os.open(folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for output in _OUTPUTS:
        os.dup2(descriptor, output)
    os.close(descriptor)


def environment(order: AttemptSpec) -> Mapping[str, str]:
    """What is different for each job."""
    return {
        "HOME": order.home,
        "USER": order.owner,
        "LOGNAME": order.owner,
        LEASE_VARIABLE: order.lease_id,
        "CARREL_REQUEST": order.request_id,
        **({COURSE_DATA: order.course_data} if order.course_data else {}),
    }
