"""What every attempt has, be it a notebook or a command: an order, a log, and somebody watching."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import Final

from ....hub.attempts.spec import NOTICE, PROGRESS, SAVED, AttemptSpec
from . import memory
from .log import Log
from .outcome import AttemptOutcome
from .progress import ProgressFile
from .reporter import EventReporter

WATCH_SECONDS: Final = 0.2


class Attempt(ABC):
    """One execution, as the thread that executes and the one that supervises it share it.

    Attributes:
        folder: of this attempt.
        stopping: set when nothing more may be started.
        process: the kernel or the command; its exit status stays readable after its death.
        used: what its processes held when they were killed for it, in bytes; 0 while all is well.
    """

    def __init__(self, order: AttemptSpec, folder: Path, teller: EventReporter, log: Log) -> None:
        self.order = order
        self.folder = folder
        self.teller = teller
        self.log = log
        self.stopping = threading.Event()
        self.process: subprocess.Popen[bytes] | None = None
        self.used = 0
        self.counter = memory.kill_counter()
        self._for_memory = False
        self._steps = ProgressFile(folder / PROGRESS)
        self._saved = TouchFile(folder / SAVED)
        self._notice = TouchFile(folder / NOTICE)

    @abstractmethod
    def execute(self) -> None:
        """Run to the end; every other end is raised."""

    @abstractmethod
    def judge(self, error: BaseException | None) -> AttemptOutcome:
        """Why it ended, from what was raised and from what was seen of the process."""

    @property
    @abstractmethod
    def failed(self) -> bool:
        """Whether it came to a bad end without raising."""

    @abstractmethod
    def conclude(self, ending: AttemptOutcome) -> None:
        """Write the end down where people will look for it, beside what is told."""

    def interrupt(self) -> None:
        """Begin to stop: nothing more is started, and what runs is interrupted."""
        self.stopping.set()
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        """The process and whatever it has in its process group."""
        self._signal(signal.SIGKILL)

    def look(self) -> None:
        """Once in a while: what has it used, how far has it come?"""
        self.take_step()
        self.take_saved()
        if self._notice.touched():
            self.save()
        self.teller.tick()
        self.log.tick()
        self.counter.mark()
        # Looked at when the death is fresh: whoever judges it may come seconds later.
        self._for_memory = self._for_memory or self._was_just_killed()
        limit = self.order.memory_bytes
        if limit and not self.used:
            used = memory.resident_bytes(os.getpid())
            if used > limit:
                self.used = used
                self.stopping.set()
                self._kill_all()

    def save(self) -> None:  # noqa: B027  # a command saves its work itself
        """It will be stopped: keep what there is, and go on."""

    def take_saved(self) -> None:
        if self._saved.touched():
            self.teller.saved()

    def take_step(self) -> None:
        step = self._steps.news()
        if step is not None:
            self.teller.step(step)

    @property
    def killed_by_system(self) -> bool:
        """For memory: signal 9 alone does not say so, the system's own count does."""
        return self._for_memory or self._was_just_killed()

    def _was_just_killed(self) -> bool:
        status = None if self.process is None else self.process.poll()
        return status == -signal.SIGKILL and self.counter.has_just_killed()

    def _signal(self, number: signal.Signals) -> None:
        if self.process is not None and self.process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)

    def _kill_all(self) -> None:
        for pid in list(memory.descendants(os.getpid())):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


class AttemptMonitor(threading.Thread):
    """Looks at an attempt five times a second, until it is told to stop."""

    def __init__(self, attempt: Attempt) -> None:
        super().__init__(name="watch", daemon=True)
        self._attempt = attempt
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(WATCH_SECONDS):
            self._attempt.look()

    def stop(self) -> None:
        self._over.set()
        self.join()


_PAUSE_SECONDS: Final = 1.0


class TouchFile:
    """A file that somebody writes or touches; ``touched`` is true once for each time.

    Touching it more often than once a second is no more news.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last = 0.0

    def touched(self) -> bool:
        try:
            at = self._path.stat().st_mtime
        except OSError:
            return False
        if abs(at - self._last) < _PAUSE_SECONDS:
            return False
        self._last = at
        return True
