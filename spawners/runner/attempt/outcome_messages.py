"""The outcomes of an attempt, with messages that users can act on."""

from __future__ import annotations

import errno
import os
import re
import shlex
import signal
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from ....hub.attempts.output_limits import format_size
from ....hub.messages.units import count
from ....hub.records.json_value import Json
from ....hub.records.requests import CauseCode
from .memory_errors import MemoryShortage, memory_shortage

MAX_MESSAGE = 500
MAX_COMMAND = 120
MAX_DETAILS = 20_000

_RESETS: Final = frozenset(
    {
        "ConnectionResetError",
        "ConnectionAbortedError",
        "RemoteDisconnected",
        "ServerDisconnectedError",
    }
)
_CONNECTION_ERRORS: Final = frozenset(
    {
        "ConnectTimeout",
        "ConnectTimeoutError",
        "ConnectionError",
        "ConnectionRefusedError",
        "ConnectionTimeoutError",
        "ClientConnectorError",
        "MaxRetryError",
        "NewConnectionError",
        "ReadTimeout",
        "ReadTimeoutError",
        "TimeoutError",
        "URLError",
    }
)
_HOST: Final = re.compile(
    r"host=|https?://|\b[A-Za-z][\w-]*(?:\.[A-Za-z][\w-]*)+:\d+|\b\d{1,3}(?:\.\d{1,3}){3}\b"
)
"""What names a host in the text of an error: a URL, ``host=``, ``name.domain:port``, an address."""
_NOT_RETRIED: Final = "It is not retried."
"""The service adds how much memory the job would have needed: it knows earlier jobs."""
_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptOutcome:
    """The data of the event ``ended``.

    Attributes:
        memory: of a job that ran out of memory.
    """

    code: CauseCode
    message: str
    details: str = ""
    memory: MemoryShortage | None = None

    def as_event(self) -> dict[str, Json]:
        found: dict[str, Json] = {
            "code": self.code.value,
            "message": self.message,
            "details": self.details,
        }
        return found if self.memory is None else {**found, "memory": asdict(self.memory)}


class StartFailed(Exception):
    """The job could not start; the text says why and what to do."""


def plain(text: str) -> str:
    """Remove terminal colours, and characters that UTF-8 cannot encode."""
    return _ESCAPES.sub("", text).encode("utf-8", "replace").decode("utf-8")


def succeeded(cells: int) -> AttemptOutcome:
    return AttemptOutcome(
        code=CauseCode.SUCCEEDED,
        message=f"Ran {count(cells, 'cell')} without an error.",
    )


def halted(place: str, cells: int) -> AttemptOutcome:
    """Return the outcome of a notebook that was stopped between two cells, to be resumed."""
    after = f"after {place} of {cells}" if place else "before its first cell"
    return AttemptOutcome(code=CauseCode.HALTED, message=f"It stopped {after}.")


def ended_itself(place: str, cells: int) -> AttemptOutcome:
    """Return the outcome of a notebook that ended itself, for example by ``sys.exit()``."""
    return AttemptOutcome(
        code=CauseCode.SUCCEEDED, message=f"Ended itself in {place} of {cells}, without an error."
    )


def invalid_job(why: str, details: str = "") -> AttemptOutcome:
    """Return the outcome of a job that cannot run as submitted; another attempt cannot either."""
    return AttemptOutcome(
        code=CauseCode.INVALID_JOB,
        message=_short(why),
        details=plain(details)[-MAX_DETAILS:],
    )


def missing_secret(why: str) -> AttemptOutcome:
    return AttemptOutcome(
        code=CauseCode.MISSING_SECRET,
        message=_short(f"{why} Set it and submit the job again, or omit it."),
    )


def kernel_not_started(exit_text: str, error: BaseException) -> AttemptOutcome:
    return AttemptOutcome(
        code=CauseCode.KERNEL_NOT_STARTED,
        message=_short(f"the kernel did not start{exit_text}: {error}"),
    )


def cell_error(place: str, name: str, value: str, lines: str) -> AttemptOutcome:
    """Return the outcome of a cell that raised an error.

    Args:
        place: ``cell 3``, counted among the code cells of the submitted notebook.
    """
    if name == "StdinNotImplementedError":
        return asked_for_input(place)
    what = f"{name}: {value}" if value.strip() else name
    memory = memory_shortage(name, plain(value))
    advice = "" if memory is None else f". {_NOT_RETRIED}"
    return AttemptOutcome(
        code=cell_error_code(name, plain(value)),
        message=_short(f"error in {place}: {what}", MAX_MESSAGE - len(advice)).rstrip(".") + advice,
        details=plain(lines)[-MAX_DETAILS:],
        memory=memory,
    )


def kernel_died(place: str, status: int | None) -> AttemptOutcome:
    """Return the outcome of a dead kernel; signal 9 alone does not prove that memory ran out."""
    exit_text = "" if status is None else f" ({describe_exit(status)})"
    where = f" in {place}" if place else ""
    return AttemptOutcome(code=CauseCode.KERNEL_DIED, message=f"kernel died{where}{exit_text}")


def out_of_memory(place: str, used: int, limit: int) -> AttemptOutcome:
    """Return the outcome of a kill by the runner, in bytes; ``place`` is empty for a command."""
    where = f" in {place}" if place else ""
    return AttemptOutcome(
        code=CauseCode.OUT_OF_MEMORY,
        message=f"Killed for memory{where}: its processes used {format_size(used)} of at most "
        f"{format_size(limit)}. {_NOT_RETRIED}",
        memory=MemoryShortage(used=used, limit=limit),
    )


def out_of_system_memory(place: str, peak: int = 0, limit: int = 0) -> AttemptOutcome:
    """Return the outcome of a kill for memory that the kernel has counted.

    Args:
        peak: the most memory of the control group, 0 if unknown; ``limit`` likewise.
    """
    where = f" in {place}" if place else ""
    return AttemptOutcome(
        code=CauseCode.OUT_OF_MEMORY,
        message=f"Killed for memory{where}: the system, or the job's control group, ran out."
        f"{_known_memory(peak, limit)} {_NOT_RETRIED}",
        # Without a limit the control group may be that of the whole machine.
        memory=MemoryShortage(used=peak if limit else 0, limit=limit),
    )


def _known_memory(peak: int, limit: int) -> str:
    if not peak:
        return ""
    bound = f" of its limit of {format_size(limit)}" if limit else ""
    return f" Its control group used up to {format_size(peak)}{bound}."


def cell_error_code(name: str, value: str) -> CauseCode:
    """Return the code of an error in a cell: most are errors of the user's code.

    * ``MemoryError`` and the errors of NumPy, PyTorch and JAX that say so: out of memory
    * a connection that was reset, or a time-out of a host that the error names: transient
    * a full disk (``ENOSPC``): transient; an exceeded disk quota is not
    """
    if memory_shortage(name, value) is not None:
        return CauseCode.OUT_OF_MEMORY
    if f"[Errno {errno.ENOSPC}]" in value:
        return CauseCode.DISK_FULL
    if name in _RESETS or (name in _CONNECTION_ERRORS and _HOST.search(value)):
        return CauseCode.CONNECTION_FAILED
    return CauseCode.CELL_ERROR


def asked_for_input(place: str) -> AttemptOutcome:
    return AttemptOutcome(
        code=CauseCode.CELL_ERROR,
        message=f"error in {place}: it calls input(), but a job cannot ask for input. "
        'Use a parameter instead: a variable in a cell tagged "parameters".',
    )


def command_succeeded(command: Sequence[str]) -> AttemptOutcome:
    return AttemptOutcome(
        code=CauseCode.SUCCEEDED, message=f"{_program(command)} ran without an error."
    )


def command_failed(command: Sequence[str], status: int, lines: str) -> AttemptOutcome:
    """Return the outcome of a command; status 75 (``EX_TEMPFAIL``) says that it may be retried."""
    how = f"exited with status {status}" if status >= 0 else f"was ended by {describe_exit(status)}"
    message = f"{_program(command)} {how}"
    if "EOFError: EOF when reading a line" in lines:
        message += "; it asks for input, but a job cannot answer: pass an argument instead"
    return AttemptOutcome(
        code=CauseCode.TEMPORARY_FAILURE if status == os.EX_TEMPFAIL else CauseCode.COMMAND_FAILED,
        message=_short(message),
        details=plain(lines)[-MAX_DETAILS:],
    )


def _program(command: Sequence[str]) -> str:
    """A command as its owner gave it; users know no command of Carrel's own programs."""
    own = list(command[1:3]) == ["-P", "-m"] and "".join(command[3:4]).startswith("carrel.")
    return "Carrel's program" if own else quote_command(command)


def quote_command(command: Sequence[str]) -> str:
    words = " ".join(plain(shlex.join(command)).split())
    return f"`{words if len(words) <= MAX_COMMAND else words[: MAX_COMMAND - 1] + '…'}`"


def stopped(number: int) -> AttemptOutcome:
    """Return the outcome after a signal; the service has the real cause of the stop.

    Carrel begins with SIGINT. SIGTERM comes from an engine or a machine that shuts down: the
    attempt is lost, reports no end, and is tried again as any other that disappears.
    """
    if number == signal.SIGTERM:
        return AttemptOutcome(
            code=CauseCode.LOST,
            message="stopped by SIGTERM from outside Carrel, as when an engine or a machine shuts "
            "down",
        )
    return AttemptOutcome(
        code=CauseCode.CANCELLED, message=f"stopped by a signal ({signal.Signals(number).name})"
    )


def fenced() -> AttemptOutcome:
    return AttemptOutcome(
        code=CauseCode.LOST, message="stopped: the service has ended this attempt"
    )


def runner_failed(error: BaseException | None) -> AttemptOutcome:
    """Return the outcome of a failure outside of the job: a full disk, or a bug in Carrel.

    The details are for the log of the service; the owner of the job sees the message.
    """
    lines = "".join(traceback.format_exception(error)) if error else ""
    return AttemptOutcome(
        code=CauseCode.LOST,
        message=_short(f"the runner failed: {type(error).__name__}: {error}"),
        details=plain(lines)[-MAX_DETAILS:],
    )


def describe_exit(status: int) -> str:
    """Describe an exit status, negative for a signal."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"signal {-status}, {signal.Signals(-status).name}"
    except ValueError:
        return f"signal {-status}"


def _short(text: str, longest: int = MAX_MESSAGE) -> str:
    line = " ".join(plain(text).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"
