"""Why an attempt came to its end, in a sentence that a person can act on."""

from __future__ import annotations

import re
import signal
import traceback
from dataclasses import dataclass
from typing import Final

from ...hub.ports.records import CauseCode

MAX_MESSAGE = 500
MAX_DETAILS = 20_000

_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The data of the event ``ended``."""

    code: CauseCode
    message: str
    details: str = ""


class StartFailed(Exception):
    """Nothing was executed; the text says why and what would help."""


def plain(text: str) -> str:
    """Without terminal colours, and of characters that UTF-8 can carry."""
    return _ESCAPES.sub("", text).encode("utf-8", "replace").decode("utf-8")


def succeeded(cells: int) -> Ending:
    return Ending(
        code=CauseCode.SUCCEEDED,
        message=f"Ran {cells} cell{'' if cells == 1 else 's'} without an error.",
    )


def ended_itself(place: str, cells: int) -> Ending:
    """The notebook left by its own will, as ``sys.exit()`` does."""
    return Ending(
        code=CauseCode.SUCCEEDED, message=f"Ended itself in {place} of {cells}, without an error."
    )


def start_failed(why: str, details: str = "") -> Ending:
    return Ending(
        code=CauseCode.START_FAILED,
        message=_short(why),
        details=plain(details)[-MAX_DETAILS:],
    )


def cell_error(place: str, name: str, value: str, lines: str) -> Ending:
    """``place`` is ``cell 3``, counted among the code cells of the notebook as submitted."""
    what = f"{name}: {value}" if value.strip() else name
    if name == "StdinNotImplementedError":
        what = "it asks for input, and nobody can answer a job; use parameters instead"
    return Ending(
        code=CauseCode.CELL_ERROR,
        message=_short(f"error in {place}: {what}"),
        details=plain(lines)[-MAX_DETAILS:],
    )


def kernel_died(place: str, status: int | None) -> Ending:
    """Says what was seen and no more: signal 9 alone does not mean that memory ran out."""
    seen = "" if status is None else f" ({exit_words(status)})"
    where = f" in {place}" if place else ""
    return Ending(code=CauseCode.KERNEL_DIED, message=f"kernel died{where}{seen}")


def cancelled(number: int) -> Ending:
    """The runner knows only the signal; the service knows who wanted it, and why."""
    return Ending(
        code=CauseCode.CANCELLED, message=f"asked to stop ({signal.Signals(number).name})"
    )


def fenced() -> Ending:
    return Ending(
        code=CauseCode.LOST, message="stopped: the service no longer counts on this attempt"
    )


def runner_failed(error: BaseException | None) -> Ending:
    """The work is not to blame: a full disk, or a mistake of ours."""
    lines = "".join(traceback.format_exception(error)) if error else ""
    return Ending(
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
