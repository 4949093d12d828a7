"""A cage runs one submission; an engine makes cages: bubblewrap on this machine, or containers.

1. ``run``: the student's cells in order, in one kernel. A marked step leaves a *snapshot*: the
   kernel as it was before that cell, forked and paused.
2. The first ``test`` or ``ask`` ends all that the student's code started; only snapshots stay.
3. ``test`` runs a cell in a snapshot, ``ask`` puts a question of plain data to one. Whatever is
   hidden is sent only then, to that one snapshot.
4. ``close`` says how it went. A cage is never used twice.

What crosses is plain data of bounded size, and is believed as far as it is bounded: it comes from
where a student's code has run.
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
    """What one cage may use.

    Attributes:
        seconds: of all steps together.
        cell_seconds: of each step: then it is interrupted, and the kernel is killed if that
            does not help.
        test_seconds: the same for each test, and for each question.
        memory_bytes: of all its processes together, what they write to files included.
        processes: at one time, threads included.
        file_bytes: of one file.
        disk_bytes: of all files together (in a container: of the home, of /tmp and of /dev/shm
            each); they lie in memory.
        output_bytes: of one cell.
        answer_bytes: of one question or answer.
        cpus: how many it may keep busy, where the engine can hold it to that.
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
        mark: keep a snapshot of the kernel as it is before this cell; it goes by ``cell_id``.
    """

    cell_id: str
    source: str
    mark: bool = False


class CellStatus(StrEnum):
    OK = "ok"
    ERROR = "error"
    """An exception; its output is among the outputs."""
    TIMEOUT = "timeout"
    """It was interrupted; the kernel lives."""
    KILLED = "killed"
    """The kernel ended in it, by itself or by force; ``cause`` says why."""
    NOT_RUN = "not run"
    """There was no kernel any more, or the snapshot was never taken."""


class StopReason(StrEnum):
    """Why a cell, or a whole cage, did not end as it should."""

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
    """How one cell went.

    Attributes:
        outputs: as nbformat 4 stores them.
        cause: other than OK where a limit was met, which may also show as an error of the cell.
        tampered: of a test: what was not as it had been before the student's code, in words
            such as ``the builtin print``.
    """

    cell_id: str
    status: CellStatus
    outputs: tuple[Mapping[str, Json], ...] = ()
    seconds: float = 0.0
    cause: StopReason = StopReason.OK
    tampered: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TestAnswer:
    """To a question; ``value`` is None unless the status is OK."""

    status: CellStatus
    value: Json = None
    cause: StopReason = StopReason.OK


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxEnd:
    """How a cage ended.

    Attributes:
        cause: the worst of what was met: OK where nothing was.
        sentence: the same for the student; empty where nothing was.
        memory_bytes: the most that was in use, where the engine knows.
    """

    cause: StopReason
    sentence: str = ""
    seconds: float = 0.0
    memory_bytes: int | None = None


Answerer = Callable[[Json], Json]
"""Answers what a test asks while it runs; called outside, in the thread of ``test``."""


class Sandbox(Protocol):
    """Used by one thread. Nothing that happens inside raises here; a cage that died says so."""

    def run(self, steps: Iterable[CellStep]) -> Iterator[CellRun]:
        """One result for each step, as it ends."""
        ...

    def test(self, mark: str, source: str, answer: Answerer | None = None) -> CellRun:
        """Run a cell in a snapshot, which is over then.

        With ``answer`` names that the kernel does not know are asked for, one plain question at a
        time: of another cage, where the test itself runs where no student's code ever did.
        """
        ...

    def ask(self, mark: str, question: Json) -> TestAnswer:
        """Put a question to a snapshot, which keeps what the answer changed in it."""
        ...

    def close(self) -> SandboxEnd:
        """End all of it. Safe to repeat."""
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
    """What an engine is made from.

    Attributes:
        data: folders for all cages to read, by their absolute path inside.
        imports: modules that are imported before a cage gets anything of a student; those that
            there are not, or that fail, are left out.
        ahead: how many cages wait ready, where an engine takes long to make one.
        image: digest of the image of a container.
        installation, docker: of the engine of containers.
        scratch: a folder of the service's own for what an engine must keep on disk.
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
        """What every engine's kernels see: also by what notebooks find the data of their course,
        here as in sessions and jobs."""
        return _OF_KERNELS | ({COURSE_DATA: next(iter(self.data))} if self.data else {})


class SandboxEngine(Protocol):
    """Usable from several threads."""

    def open(self, limits: SandboxLimits, files: Mapping[str, bytes] | None = None) -> Sandbox:
        """A fresh cage, whose working folder holds these files (relative name to content).

        Raises:
            InvalidInput: a name leads elsewhere, or they are more than ``disk_bytes``.
            Unavailable: the engine does not answer (any more).
            BackendFailed: it cannot make one; the sentence says what is missing.
        """
        ...

    def close(self) -> None:
        """End every cage of it. Safe to repeat."""
        ...


EngineFactory = Callable[[SandboxSettings], SandboxEngine]
"""Raises BackendFailed where something is missing that it needs."""


class SandboxFactory(Protocol):
    """An engine as the installation has it, for the work of one assignment."""

    def __call__(self, *, course: str, image: str, imports: tuple[str, ...]) -> SandboxEngine:
        """As in ``SandboxSettings``, with the course's data. Raises BackendFailed, InvalidInput."""
        ...
