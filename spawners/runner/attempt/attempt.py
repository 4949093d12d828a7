"""Base class of notebook and command attempts, and the thread that monitors them."""

from __future__ import annotations

import json
import os
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

import psutil

from ....hub.attempts.spec import NOTICE, PROGRESS, PROVENANCE, SAVED, WORK, AttemptSpec
from ....hub.files.safe_fs import write_into
from ....hub.interfaces.backend_settings import COURSE_DATA
from ....hub.records.json_value import Json
from ....hub.records.notices import NoticeKind
from . import environment, memory
from .log import Log
from .observed_inputs import ObservedInputs
from .outcome_messages import AttemptOutcome
from .output_masker import Masker
from .progress import ProgressFile
from .reporter import EventReporter

MONITOR_SECONDS: Final = 0.2


class Process(Protocol):
    """The kernel or the command: a child of the runner, or a fork of a server."""

    pid: int
    returncode: int | None

    def poll(self) -> int | None:
        """Return the exit status, or None while it runs."""


class Attempt(ABC):
    """The execution of an attempt, shared by the executing and the monitoring thread.

    Attributes:
        folder: the attempt's folder.
        stopping: set when no further cell or process may be started.
        process: the kernel or the command; its exit status stays readable after its end.
        masker: masks the values of its secrets in outputs.
        memory_used: memory of its processes in bytes when they were killed for it; 0 otherwise.
    """

    def __init__(self, order: AttemptSpec, folder: Path, reporter: EventReporter, log: Log) -> None:
        self.order = order
        self.folder = folder
        self.reporter = reporter
        self.log = log
        self.stopping = threading.Event()
        self.process: Process | None = None
        self.memory_used = 0
        self.counter = memory.kill_counter()
        self.masker = Masker()
        self._killed_for_memory = False
        self._inputs: ObservedInputs | None = None
        self._git: Mapping[str, Json] | None = None
        self._steps = ProgressFile(folder / PROGRESS)
        self._saved = TouchFile(folder / SAVED)
        self._notice = TouchFile(folder / NOTICE)

    @abstractmethod
    def execute(self) -> None:
        """Run to the end; raises an exception unless the job succeeds."""

    @abstractmethod
    def judge(self, error: BaseException | None) -> AttemptOutcome:
        """Return the outcome, from the exception of ``execute`` and the exit of the process."""

    @property
    @abstractmethod
    def failed(self) -> bool:
        """Whether the job failed without an exception."""

    @abstractmethod
    def conclude(self, outcome: AttemptOutcome) -> None:
        """Save the outcome in the output, in addition to the event."""

    def finish(self, outcome: AttemptOutcome) -> None:  # noqa: B027  # a command has nothing left
        """Do what is left to do when all processes of the attempt have ended."""

    def interrupt(self) -> None:
        """Start to stop: start nothing more, and interrupt the running process."""
        self.stopping.set()
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        """Kill the process and its process group."""
        self._signal(signal.SIGKILL)

    def check(self) -> None:
        """Check memory, progress, save marks and the notice."""
        self.report_step()
        self.report_saved()
        if self._notice.touched():
            self.save()
        if self._inputs is not None:
            self._inputs.poll()
        self.reporter.tick()
        self.log.tick()
        self.counter.mark()
        # Checked soon after the process dies: judge() may run seconds later.
        self._killed_for_memory = self._killed_for_memory or self._was_just_killed()
        limit = self.order.job.memory_bytes
        if limit and not self.memory_used:
            memory_used = memory.used_bytes(limit, *self._roots())
            if memory_used > limit:
                self.memory_used = memory_used
                self.stopping.set()
                self._kill_all()

    def observe(self, working_folder: Path) -> None:
        """Begin to observe what the job reads; called before it starts.

        The job does not depend on it: what cannot be observed is missing in the receipt.
        """
        home = Path(self.order.home)
        roots = {"work": self.folder / WORK} if self.order.archive_path else {"home": home}
        if course := os.environ.get(COURSE_DATA):
            roots["course"] = Path(course)
        with suppress(OSError, RuntimeError):
            self._git = environment.git_state(working_folder, home.resolve())
            self._inputs = ObservedInputs(roots, working_folder)

    def measured_memory(self) -> int:
        """Return the memory of its processes in bytes; what they share counts once."""
        return memory.used_bytes(0, *self._roots())

    def write_provenance(self) -> None:
        """Write what the runner knows for the receipt; called when all processes have ended."""
        found: dict[str, Json] = {**environment.described(), "git": self._git}
        if self._inputs is not None:
            found["inputs"] = self._inputs.as_json()
        write_into(self.folder, PROVENANCE, json.dumps(found))

    def has_notice(self) -> bool:
        """Whether the attempt will be stopped soon."""
        return (self.folder / NOTICE).exists()

    def is_halted(self) -> bool:
        """Whether a user halts this job: it ends as soon as its work is saved."""
        try:
            notice: object = json.loads((self.folder / NOTICE).read_bytes())
        except (OSError, ValueError):
            return False
        return isinstance(notice, dict) and notice.get("why") == NoticeKind.HALT

    def save(self) -> None:  # noqa: B027  # a command saves its work itself
        """Save the work so far because the attempt will be stopped, and continue."""

    def report_saved(self) -> None:
        if self._saved.touched():
            self.reporter.saved()

    def report_step(self) -> None:
        step = self._steps.read_new()
        if step is not None:
            self.reporter.step(step)

    @property
    def killed_by_system(self) -> bool:
        """Whether the kernel's counter confirms a kill for memory; signal 9 alone is no proof."""
        return self._killed_for_memory or self._was_just_killed()

    def _was_just_killed(self) -> bool:
        status = None if self.process is None else self.process.poll()
        return status == -signal.SIGKILL and self.counter.has_just_killed()

    def processes(self) -> Iterator[psutil.Process]:
        """Yield the live processes of the attempt, without the runner."""
        for pid in list(memory.descendants(*self._roots())):
            with suppress(psutil.NoSuchProcess):
                yield psutil.Process(pid)

    def _roots(self) -> tuple[int, ...]:
        """Return the runner and its kernel, which may be the fork of a server."""
        if self.process is None or self.process.poll() is not None:
            return (os.getpid(),)
        return os.getpid(), self.process.pid

    def _signal(self, number: signal.Signals) -> None:
        if self.process is not None and self.process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)

    def _kill_all(self) -> None:
        for pid in list(memory.descendants(*self._roots())):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


class AttemptMonitor(threading.Thread):
    """Checks an attempt five times a second, until it is stopped."""

    def __init__(self, attempt: Attempt) -> None:
        super().__init__(name="watch", daemon=True)
        self._attempt = attempt
        self._stopped = threading.Event()

    def run(self) -> None:
        while not self._stopped.wait(MONITOR_SECONDS):
            self._attempt.check()

    def stop(self) -> None:
        self._stopped.set()
        self.join()


_PAUSE_SECONDS: Final = 1.0


class TouchFile:
    """A file that the job writes or touches; ``touched`` returns True once per change.

    Another change within a second does not count.
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
