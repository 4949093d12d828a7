"""Processes with limits for work on what users send, a few at a time.

Such work can take long, need much memory, or hold the interpreter; in the service it would delay
every other call.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import BoundedSemaphore
from typing import Final

from ..errors import Unavailable

AT_ONCE: Final = 2
"""Processes of one kind for all users."""
WAIT_SECONDS: Final = 5.0
_NICENESS: Final = 5
_KEPT: Final = ("PATH", "LANG", "LC_ALL", "PYTHONPATH", "VIRTUAL_ENV", "TMPDIR")
"""Variables that the process gets: no secret of the service."""


def module_command(name: str) -> tuple[str, ...]:
    """Return the command that runs a module of Carrel in this Python."""
    return (sys.executable, "-P", "-m", f"carrel.hub.{name}")


@dataclass(frozen=True, slots=True)
class LimitedProcess:
    """Processes of one kind.

    Attributes:
        command: reads the standard input and writes the standard output; limits itself by
            ``limit_this_process``.
        seconds: after which it is killed.
        busy: the sentence for a caller while ``AT_ONCE`` others run.
        slots: limits how many run.
        waits: whether a caller waits for a slot; otherwise it is told at once that none is free.
    """

    command: tuple[str, ...]
    seconds: float
    busy: str
    slots: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore(AT_ONCE), kw_only=True)
    waits: bool = field(default=True, kw_only=True)

    def run(self, given: bytes) -> subprocess.CompletedProcess[bytes]:
        """Run one process; blocks the calling thread. Raises as ``run_made``."""
        return self.run_made(lambda: given)

    def run_made(self, make: Callable[[], bytes]) -> subprocess.CompletedProcess[bytes]:
        """Run one process on an input that is made only once the process may run.

        What needs much to make is then not made for more callers at once than there are slots.

        Raises:
            Unavailable: too many run.
            subprocess.TimeoutExpired: it was killed after ``seconds``.
        """
        if not self.slots.acquire(timeout=WAIT_SECONDS if self.waits else 0.0):
            raise Unavailable(self.busy, accepted="Try again in a minute.")
        try:
            return subprocess.run(
                self.command,
                input=make(),
                capture_output=True,
                timeout=self.seconds,
                env={name: os.environ[name] for name in _KEPT if name in os.environ},
                check=False,
            )
        finally:
            self.slots.release()


def limit_this_process(*, cpu_seconds: int, memory_bytes: int) -> None:
    """Limit the processor time and the address space of the process that calls this."""
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    os.nice(_NICENESS)
