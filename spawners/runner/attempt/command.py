"""A command job: one program with its arguments, its output in the log, its exit told."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from . import outcome as ending
from .attempt import Attempt
from .log import drain
from .outcome import AttemptOutcome, StartFailed
from .progress import step_of_bar
from .working_folder import working_folder

_DRAIN_SECONDS: Final = 1.0
_TAIL_CHARACTERS: Final = 8000
_START: Final = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
for number in (signal.SIGPIPE, signal.SIGXFSZ):
    signal.signal(number, signal.SIG_DFL)
os.execvp(sys.argv[2], sys.argv[2:])
"""
"""Has the kernel end the command when its runner dies, then becomes the command."""


class CommandAttempt(Attempt):
    """Runs the command of an order in a process group of its own."""

    def execute(self) -> None:
        command = self.order.command
        os.chdir(working_folder(self.order, self.folder))
        if shutil.which(command[0]) is None:
            raise StartFailed(
                f'there is no program "{command[0]}" that can be run here; '
                "its folder must be in PATH, or its path be given with it"
            )
        inner, outer = os.pipe()
        try:
            self.process = self._start(command, outer)
        finally:
            os.close(outer)
        pipe = drain(inner, self._take)
        if self.stopping.is_set():
            self.interrupt()
        self.process.wait()
        # A daemon that it left behind may hold the pipe; it is ended later.
        pipe.join(_DRAIN_SECONDS)
        self.take_step()
        self.take_saved()
        self.teller.settle()

    def judge(self, error: BaseException | None) -> AttemptOutcome:
        command, process = self.order.command, self.process
        if isinstance(error, StartFailed):
            return ending.start_failed(str(error))
        if self.used:
            return ending.out_of_memory(self.used, self.order.memory_bytes)
        if error is not None or process is None or process.returncode is None:
            return ending.runner_failed(error)
        if process.returncode == 0:
            return ending.command_succeeded(command)
        if self.killed_by_system:
            return ending.out_of_system_memory("")
        tail = self.log.tail(_TAIL_CHARACTERS)
        return ending.command_failed(command, process.returncode, tail)

    @property
    def failed(self) -> bool:
        return self.process is not None and self.process.poll() != 0

    def conclude(self, ending: AttemptOutcome) -> None:
        """All that a command leaves is its log and its files."""

    def _start(self, command: Sequence[str], output: int) -> subprocess.Popen[bytes]:
        before = [sys.executable, "-I", "-S", "-c", _START, str(os.getpid())]
        return subprocess.Popen(
            [*before, *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            # A log that comes only when a buffer is full is not live.
            env={"PYTHONUNBUFFERED": "1", **os.environ},
            process_group=0,
        )

    def _take(self, text: str) -> None:
        self.log.write(text)
        step = step_of_bar(text)
        if step is not None:
            self.teller.step(step)
