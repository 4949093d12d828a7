"""Why an attempt came to its end, in a sentence that a person can act on."""

from __future__ import annotations

import re
import shlex
import signal
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ....hub.attempts.output_limits import size_words
from ....hub.records.requests import CauseCode

MAX_MESSAGE = 500
MAX_COMMAND = 120
MAX_DETAILS = 20_000

_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptOutcome:
    """The data of the event ``ended``."""

    code: CauseCode
    message: str
    details: str = ""


class StartFailed(Exception):
    """Nothing was executed; the text says why and what would help."""


def plain(text: str) -> str:
    """Without terminal colours, and of characters that UTF-8 can carry."""
    return _ESCAPES.sub("", text).encode("utf-8", "replace").decode("utf-8")


def succeeded(cells: int) -> AttemptOutcome:
    return AttemptOutcome(
        code=CauseCode.SUCCEEDED,
        message=f"Ran {cells} cell{'' if cells == 1 else 's'} without an error.",
    )


def ended_itself(place: str, cells: int) -> AttemptOutcome:
    """The notebook left by its own will, as ``sys.exit()`` does."""
    return AttemptOutcome(
        code=CauseCode.SUCCEEDED, message=f"Ended itself in {place} of {cells}, without an error."
    )


def start_failed(why: str, details: str = "") -> AttemptOutcome:
    return AttemptOutcome(
        code=CauseCode.START_FAILED,
        message=_short(why),
        details=plain(details)[-MAX_DETAILS:],
    )


def cell_error(place: str, name: str, value: str, lines: str) -> AttemptOutcome:
    """``place`` is ``cell 3``, counted among the code cells of the notebook as submitted."""
    if name == "StdinNotImplementedError":
        return asked_for_input(place)
    what = f"{name}: {value}" if value.strip() else name
    return AttemptOutcome(
        code=CauseCode.CELL_ERROR,
        message=_short(f"error in {place}: {what}"),
        details=plain(lines)[-MAX_DETAILS:],
    )


def kernel_died(place: str, status: int | None) -> AttemptOutcome:
    """Says what was seen and no more: signal 9 alone does not mean that memory ran out."""
    seen = "" if status is None else f" ({exit_words(status)})"
    where = f" in {place}" if place else ""
    return AttemptOutcome(code=CauseCode.KERNEL_DIED, message=f"kernel died{where}{seen}")


def out_of_memory(used: int, limit: int) -> AttemptOutcome:
    return AttemptOutcome(
        code=CauseCode.OUT_OF_MEMORY,
        message=f"Killed for memory: its processes used {size_words(used)}, "
        f"its limit was {size_words(limit)}.",
    )


def out_of_system_memory(place: str) -> AttemptOutcome:
    """Only where the system itself has counted such a kill."""
    where = f" in {place}" if place else ""
    return AttemptOutcome(
        code=CauseCode.OUT_OF_MEMORY,
        message=f"Killed for memory{where}: the system ran out of it, or of what it allows here.",
    )


def asked_for_input(place: str) -> AttemptOutcome:
    return AttemptOutcome(
        code=CauseCode.CELL_ERROR,
        message=f"error in {place}: it calls input(), and a job has nobody to ask. "
        'Use a parameter instead: a variable in a cell tagged "parameters".',
    )


def command_succeeded(command: Sequence[str]) -> AttemptOutcome:
    return AttemptOutcome(
        code=CauseCode.SUCCEEDED, message=f"{command_words(command)} ran without an error."
    )


def command_failed(command: Sequence[str], status: int, lines: str) -> AttemptOutcome:
    how = f"exited with status {status}" if status >= 0 else f"was ended by {exit_words(status)}"
    message = f"{command_words(command)} {how}"
    if "EOFError: EOF when reading a line" in lines:
        message += "; it asks for input, and a job has nobody to ask: give it an argument instead"
    return AttemptOutcome(
        code=CauseCode.COMMAND_FAILED,
        message=_short(message),
        details=plain(lines)[-MAX_DETAILS:],
    )


def command_words(command: Sequence[str]) -> str:
    words = " ".join(plain(shlex.join(command)).split())
    return f"`{words if len(words) <= MAX_COMMAND else words[: MAX_COMMAND - 1] + '…'}`"


def cancelled(number: int) -> AttemptOutcome:
    """The runner knows only the signal; the service knows who wanted it, and why."""
    return AttemptOutcome(
        code=CauseCode.CANCELLED, message=f"asked to stop ({signal.Signals(number).name})"
    )


def fenced() -> AttemptOutcome:
    return AttemptOutcome(
        code=CauseCode.LOST, message="stopped: the service no longer counts on this attempt"
    )


def runner_failed(error: BaseException | None) -> AttemptOutcome:
    """The work is not to blame: a full disk, or a mistake of ours."""
    lines = "".join(traceback.format_exception(error)) if error else ""
    return AttemptOutcome(
        code=CauseCode.LOST,
        message=_short(f"the runner failed: {type(error).__name__}: {error}"),
        details=plain(lines)[-MAX_DETAILS:],
    )


def exit_words(status: int) -> str:
    """An exit status as the system gives it, negative for a signal."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"signal {-status}, {signal.Signals(-status).name}"
    except ValueError:
        return f"signal {-status}"


def _short(text: str) -> str:
    line = " ".join(plain(text).split())
    return line if len(line) <= MAX_MESSAGE else line[: MAX_MESSAGE - 1] + "…"
