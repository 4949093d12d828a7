"""The protocols of sandboxes and of the engines that create them (bubblewrap or containers).

A sandbox runs one submission:

1. ``run``: run the student's cells in order, in one kernel. A marked step leaves a *snapshot*: a
   paused fork of the kernel as it was before that cell.
2. The first ``test`` or ``ask`` ends every process of the student's code; only snapshots stay.
3. ``test`` runs a cell in a snapshot, ``ask`` sends it a question of plain data. Hidden tests are
   sent only then, to that one snapshot.
4. ``close`` returns how it ended. A sandbox is never used twice.

Only plain data of bounded size leaves a sandbox. It is not trusted: a student's code has run there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final, Protocol

from ...hub.interfaces.backend_settings import COURSE_DATA, DockerOptions
from ...hub.records.json_value import Json

ENGINES: Final = "carrel.sandboxes"
"""The group of entry points: each is an ``EngineFactory``."""
_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxLimits:
    """What one sandbox may use.

    Attributes:
        seconds: for all steps together.
        cell_seconds: for each step; then it is interrupted, and then its kernel is killed.
        test_seconds: the same for each test and for each question.
        memory_bytes: of all processes together, including files, which lie in memory.
        processes: at the same time, including threads.
        file_bytes: of one file.
        disk_bytes: of all files together (in a container: of the home, of /tmp and of /dev/shm
            each).
        output_bytes: of one cell.
        answer_bytes: of one question or answer.
        cpus: CPU cores, where the engine can limit them.
    """

    seconds: float = 300.0
    cell_seconds: float = 30.0
    test_seconds: float = 30.0
    memory_bytes: int = 1024 * _MIB
    processes: int = 64
    file_bytes: int = 64 * _MIB
    disk_bytes: int = 128 * _MIB
    output_bytes: int = 4 * _MIB
    answer_bytes: int = 16 * _MIB
    cpus: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CellStep:
    """One code cell of the student's phase.

    Attributes:
        mark: keep a snapshot of the kernel before this cell, named by its ``cell_id``.
    """

    cell_id: str
    source: str
    mark: bool = False


class CellStatus(StrEnum):
    OK = "ok"
    ERROR = "error"
    """An exception; its output is among the outputs."""
    TIMEOUT = "timeout"
    """Interrupted; the kernel still runs."""
    KILLED = "killed"
    """The kernel exited or was killed in it; ``cause`` says why."""
    NOT_RUN = "not run"
    """There was no kernel, or no snapshot of this name."""


class StopReason(StrEnum):
    """Why a cell or a sandbox was stopped."""

    OK = "ok"
    MEMORY = "memory"
    TIME = "time"
    PROCESSES = "processes"
    OUTPUT = "output"
    DISK = "disk"
    DIED = "died"
    """The process ended itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRun:
    """The result of one cell.

    Attributes:
        outputs: in the form of nbformat 4.
        cause: the limit that was reached, if any; it may also show as an error of the cell.
        tampered: of a test: what the student's code has changed, such as ``the builtin print``.
    """

    cell_id: str
    status: CellStatus
    outputs: tuple[Mapping[str, Json], ...] = ()
    seconds: float = 0.0
    cause: StopReason = StopReason.OK
    tampered: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TestAnswer:
    """The answer to a question; ``value`` is None unless the status is OK."""

    status: CellStatus
    value: Json = None
    cause: StopReason = StopReason.OK


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxEnd:
    """How a sandbox ended.

    Attributes:
        cause: the most serious limit that was reached; OK for none.
        sentence: the same for the student; empty for none.
        memory_bytes: peak memory, where the engine knows it.
    """

    cause: StopReason
    sentence: str = ""
    seconds: float = 0.0
    memory_bytes: int | None = None


Answerer = Callable[[Json], Json]
"""Answers the questions of a running test; called outside, in the thread of ``test``."""


class Sandbox(Protocol):
    """One sandbox, used by one thread. Failures inside are results, not exceptions."""

    def run(self, steps: Iterable[CellStep]) -> Iterator[CellRun]:
        """Run steps; yields the result of each."""
        ...

    def test(self, mark: str, source: str, answer: Answerer | None = None) -> CellRun:
        """Run a cell in a snapshot, and end the snapshot.

        With ``answer``, names that the kernel does not know become questions: the test runs where
        no student's code ever ran, and ``answer`` asks another sandbox.
        """
        ...

    def ask(self, mark: str, question: Json) -> TestAnswer:
        """Send a question to a snapshot, which keeps the changes that answering made."""
        ...

    def close(self) -> SandboxEnd:
        """End all its processes. Safe to repeat."""
        ...


_OF_KERNELS: Final = {
    "USER": "student",
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    "MPLCONFIGDIR": "/tmp/matplotlib",  # noqa: S108
    "IPYTHONDIR": "/tmp/ipython",  # noqa: S108
    **dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSettings:
    """Settings of an engine.

    Attributes:
        data: read-only folders in all sandboxes, by their absolute path inside.
        imports: modules to import before a sandbox gets a submission; missing ones are skipped.
        ahead: sandboxes to keep ready, where creating one takes long.
        image: digest of the containers' image.
        installation, docker: for the container engine.
        scratch: a folder of the service for files of the engine.
    """

    data: Mapping[str, Path] = field(default_factory=dict)
    imports: tuple[str, ...] = ()
    ahead: int = 2
    image: str = ""
    installation: str = ""
    docker: DockerOptions | None = None
    scratch: Path | None = None

    @property
    def environment(self) -> dict[str, str]:
        """Variables of the kernels. As in sessions and jobs, one names the course's data."""
        return _OF_KERNELS | ({COURSE_DATA: next(iter(self.data))} if self.data else {})


class SandboxEngine(Protocol):
    """Creates sandboxes. Usable from several threads."""

    def open(self, limits: SandboxLimits, files: Mapping[str, bytes] | None = None) -> Sandbox:
        """Create a sandbox whose working folder holds these files (relative name to content).

        Raises:
            InvalidInput: a name leaves the folder, or they exceed ``disk_bytes``.
            Unavailable: the engine does not answer.
            BackendFailed: it cannot create one; the message says what is missing.
        """
        ...

    def close(self) -> None:
        """End all its sandboxes. Safe to repeat."""
        ...


EngineFactory = Callable[[SandboxSettings], SandboxEngine]
"""Raises BackendFailed where the engine lacks a program or a right."""


class SandboxFactory(Protocol):
    """Creates the installation's engine for the submissions to one assignment."""

    def __call__(self, *, course: str, image: str, imports: tuple[str, ...]) -> SandboxEngine:
        """As in ``SandboxSettings``, with the course's data. Raises BackendFailed, InvalidInput."""
        ...
