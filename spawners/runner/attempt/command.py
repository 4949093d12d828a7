"""Run a command job: a program with its arguments, with its output in the log."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from . import outcome_messages as outcome
from .attempt import Attempt
from .log import drain
from .outcome_messages import AttemptOutcome, StartFailed
from .progress import step_of_bar
from .working_folder import working_folder

_DRAIN_SECONDS: Final = 1.0
_TAIL_CHARACTERS: Final = 8000
_LAUNCHER: Final = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
for number in (signal.SIGPIPE, signal.SIGXFSZ):
    signal.signal(number, signal.SIG_DFL)
os.execvp(sys.argv[2], sys.argv[2:])
"""
"""Sets that the kernel kills the command when its runner dies, then executes the command."""


class CommandAttempt(Attempt):
    """Runs the command of an order in its own process group."""

    def execute(self) -> None:
        command = self.order.job.command
        cwd = working_folder(self.order, self.folder)
        os.chdir(cwd)
        self.observe(cwd)
        if shutil.which(command[0]) is None:
            raise StartFailed(
                f'the program "{command[0]}" was not found; '
                "add its folder to PATH, or give its full path"
            )
        run_process(self, command, self._handle_output)
        self.report_step()
        self.report_saved()
        self.reporter.settle()

    def judge(self, error: BaseException | None) -> AttemptOutcome:
        command, process = self.order.job.command, self.process
        if isinstance(error, StartFailed):
            return outcome.invalid_job(str(error))
        if self.memory_used:
            return outcome.out_of_memory("", self.memory_used, self.order.job.memory_bytes)
        if error is not None or process is None or process.returncode is None:
            return outcome.runner_failed(error)
        if process.returncode == 0:
            return outcome.command_succeeded(command)
        if self.killed_by_system:
            return outcome.out_of_system_memory("", *self.counter.peak_and_limit())
        tail = self.log.tail(_TAIL_CHARACTERS)
        return outcome.command_failed(command, process.returncode, tail)

    @property
    def failed(self) -> bool:
        return self.process is not None and self.process.poll() != 0

    def conclude(self, outcome: AttemptOutcome) -> None:
        """Do nothing: a command leaves only its log and its files."""

    def _handle_output(self, text: str) -> None:
        self.log.write(text)
        step = step_of_bar(text)
        if step is not None:
            self.reporter.step(step)


def run_process(
    attempt: Attempt,
    command: Sequence[str],
    handle_output: Callable[[str], None],
    environment: Mapping[str, str] = {},
) -> int:
    """Run a command as the process of an attempt; return its exit status.

    Args:
        environment: variables in addition to those of the runner.
    """
    inner, outer = os.pipe()
    before = [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid())]
    try:
        process = attempt.process = subprocess.Popen(
            [*before, *command],
            stdin=subprocess.DEVNULL,
            stdout=outer,
            stderr=outer,
            # Unbuffered, so that the log is live.
            env={"PYTHONUNBUFFERED": "1", **os.environ, **environment},
            process_group=0,
        )
    finally:
        os.close(outer)
    pipe = drain(inner, handle_output)
    if attempt.stopping.is_set():
        attempt.interrupt()
    status = process.wait()
    # A process that the command left behind may keep the pipe open; it is stopped later.
    pipe.join(_DRAIN_SECONDS)
    return status
