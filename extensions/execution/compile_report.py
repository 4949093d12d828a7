"""Report which lines keep functions from being compiled, in the folder of a job's attempt.

A line of JSON is appended for each function when it was chosen how to execute it, and when that
changes. Outside of a job nothing is written; a report is not worth a failed job.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from ...hub.attempts.compilations import (
    LONGEST_TEXT,
    MOST_BYTES,
    MOST_LINES,
    CompilationObstacle,
)
from ...hub.attempts.spec import COMPILATIONS
from ..runtime.report import VARIABLE
from .compilation import GraphBreak
from .purity import SideEffect

_CELL: Final = re.compile(r"ipykernel_\d+|<ipython-input")


def obstacle_of_break(found: GraphBreak) -> CompilationObstacle:
    """Return a graph break as a line with the rewrite that helps."""
    source = found.source
    head = source.partition(" ")[0]
    if found.reason.startswith("generic_jump"):
        reason = "breaks the graph, as Python needs the value of a tensor to go on"
        rewrite = {
            "while": "Use torch.while_loop, or a fixed number of steps.",
            "if": "Use torch.cond for two long branches, or torch.where for short ones.",
            "elif": "Use torch.cond for two long branches, or torch.where for short ones.",
        }.get(head, "Use torch.where, or decide outside of the function.")
    elif "item()" in found.reason or "Tensor.tolist" in found.reason:
        reason = "breaks the graph, as it reads the value of a tensor"
        rewrite = "Leave the value in a tensor, and use torch.where or torch.cond on it."
    else:
        reason, rewrite = f"breaks the graph ({found.reason})", ""
    return CompilationObstacle(
        place=place_of(found.file, found.line), source=source, reason=reason, rewrite=rewrite
    )


def obstacle_of_effect(found: SideEffect) -> CompilationObstacle:
    return CompilationObstacle(
        place=place_of(found.file, found.line) if found.line else found.function,
        source=found.source,
        reason=found.reason,
        rewrite=found.rewrite,
    )


def place_of(file: str, line: int) -> str:
    """Return a line as a user knows it: by the number of its cell, or the name of its file."""
    if not _CELL.search(file):
        return f"{Path(file).name}, line {line}"
    with suppress(Exception):  # whatever another version of IPython has in this place
        from IPython import get_ipython  # noqa: PLC0415 # only in notebooks

        shell: Any = get_ipython()
        _, name = shell.compile.format_code_name(file)
        return f"{name}, line {line}"
    return f"a cell, line {line}"


def obstacle_text(found: CompilationObstacle) -> str:
    source = f" ({found.source})" if found.source else ""
    return f"{found.place}{source}: {found.reason}. {found.rewrite}".rstrip()


def record(
    function: Callable[..., Any], outcome: str, obstacles: Sequence[CompilationObstacle]
) -> None:
    """Append what has become of a function to the file of the job, if this is one."""
    path = os.environ.get(VARIABLE)
    if not path:
        return
    code = getattr(function, "__code__", None)
    found = {
        "function": getattr(function, "__name__", type(function).__name__),
        "place": place_of(code.co_filename, code.co_firstlineno) if code else "",
        "outcome": outcome[:LONGEST_TEXT],
        "obstacles": [
            {
                "place": each.place[:LONGEST_TEXT],
                "source": each.source[:LONGEST_TEXT],
                "reason": each.reason[:LONGEST_TEXT],
                "rewrite": each.rewrite[:LONGEST_TEXT],
            }
            for each in obstacles[:MOST_LINES]
        ],
    }
    line = json.dumps(found, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    with suppress(OSError):
        descriptor = os.open(Path(path).with_name(COMPILATIONS), flags, 0o600)
        try:
            if os.fstat(descriptor).st_size + len(line) <= MOST_BYTES:
                os.write(descriptor, line)
        finally:
            os.close(descriptor)
