"""The snapshot of a notebook's variables in the folder of an attempt, and where to go on from it.

The kernel of the attempt writes the files, so that they are read like anything of a user: bounded,
and no path in them is followed. A pickle is loaded only in a kernel of the same user.
"""

from __future__ import annotations

import difflib
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISREG
from typing import Final

from ..errors import InvalidInput
from ..files.safe_fs import opened_file
from ..records.json_value import parse_json
from .spec import OUTPUT

SNAPSHOT: Final = "snapshot.json"
WRITING: Final = "snapshot.part"
"""Exists while a fork of the kernel writes a snapshot."""
RESUMED: Final = "resumed.json"
RESUMED_PICKLE: Final = "resumed.pkl"
RESUMED_OUTPUT: Final = "resumed.ipynb"
_HEADER_BYTES: Final = 1 << 20
_LEFT_OUT: Final = 1000
_NAME, _REASON = 200, 300
_MOST_CELLS: Final = 1 << 20
_MOST_LINES: Final = 10_000
"""Lines that are compared for one answer: the time is the square of their number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableSnapshot:
    """The variables after a cell.

    Attributes:
        folder: the attempt's folder.
        file: name of the pickle.
        output: name of the executed notebook.
        index: of the cell in the executed notebook.
        number: of the cell, as users count; 0 for injected parameters.
        python: version of the kernel, such as ``(3, 11)``.
        left_out: reason by variable that could not be saved.
    """

    folder: Path
    file: str
    output: str
    index: int
    number: int
    python: tuple[int, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)


def find(folder: Path) -> VariableSnapshot | None:
    """Return the newest complete snapshot of an attempt, or the one that it was resumed from."""
    return _read(folder, SNAPSHOT) or _read(folder, RESUMED)


def _read(folder: Path, name: str) -> VariableSnapshot | None:
    try:
        with opened_file(folder, name) as file:
            found: object = parse_json(file.read(_HEADER_BYTES))
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict):
        return None
    pickle, index, number = found.get("file"), found.get("index"), found.get("number")
    python, left_out = found.get("python"), found.get("left_out")
    if name == RESUMED:
        pickle = RESUMED_PICKLE
    if (
        not isinstance(pickle, str)
        or not isinstance(index, int)
        or not isinstance(number, int)
        or not 0 <= index < _MOST_CELLS
        or not 0 <= number <= index + 1
        or not isinstance(python, list)
        or not _is_file(folder, pickle)
    ):
        return None
    output = OUTPUT if _is_file(folder, OUTPUT) else RESUMED_OUTPUT
    if not _is_file(folder, output):
        return None
    return VariableSnapshot(
        folder=folder,
        file=pickle,
        output=output,
        index=index,
        number=number,
        python=tuple(part for part in python if isinstance(part, int)),
        left_out=_texts(left_out),
    )


def _texts(found: object) -> dict[str, str]:
    if not isinstance(found, dict):
        return {}
    pairs = list(found.items())[:_LEFT_OUT]
    return {name[:_NAME]: str(reason)[:_REASON] for name, reason in pairs}


def _is_file(folder: Path, name: str) -> bool:
    try:
        return "/" not in name and S_ISREG((folder / name).lstat().st_mode)
    except (OSError, ValueError):
        return False


def hand_over(snapshot: VariableSnapshot, folder: Path) -> None:
    """Link the files of a snapshot into the folder of a new attempt; safe to repeat.

    Raises:
        OSError: a file is missing or cannot be linked or copied.
    """
    header = SNAPSHOT if snapshot.file != RESUMED_PICKLE else RESUMED
    names = {
        snapshot.file: RESUMED_PICKLE,
        snapshot.output: RESUMED_OUTPUT,
        header: RESUMED,
    }
    for source, target in names.items():
        draft = folder / f".{target}.part"
        draft.unlink(missing_ok=True)
        try:
            # A link of the user's own stays a link: it is followed only where the user's code runs.
            os.link(snapshot.folder / source, draft, follow_symlinks=False)
        except OSError:
            shutil.copyfile(snapshot.folder / source, draft, follow_symlinks=False)
        draft.replace(folder / target)


def continuation_folder(home: Path, name: str) -> Path:
    """Return the folder in a home in which a session saves the state of a notebook for a job."""
    return home / ".local" / "share" / "carrel" / "continuations" / name


def delete(folder: Path) -> None:
    """Delete the snapshots of an attempt, its own and the one that it was resumed from."""
    for pattern in ("snapshot*", "resumed.*"):
        for path in folder.glob(pattern):
            path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedCell:
    """A code cell that differs from the one that was executed.

    Attributes:
        number: of the cell, as users count.
        diff: lines of a unified diff; below its heading only a note if the cell is too long.
    """

    number: int
    diff: str


def changed_cells(
    before: Sequence[str], now: Sequence[str], *, until: int
) -> tuple[ChangedCell, ...]:
    """Compare the sources of the code cells before the cell with number ``until``."""
    changed, left = [], _MOST_LINES
    for number in range(1, min(until, max(len(before), len(now)) + 1)):
        old = before[number - 1] if number <= len(before) else ""
        new = now[number - 1] if number <= len(now) else ""
        if old == new:
            continue
        was, becomes = old.split("\n"), new.split("\n")
        lines = len(was) + len(becomes)
        if lines > left:
            diff = ["--- before", "+++ now", f"({lines:,} lines: too many to be compared)"]
        else:
            left -= lines
            diff = [*difflib.unified_diff(was, becomes, "before", "now", lineterm="", n=1)]
        changed.append(ChangedCell(number=number, diff="\n".join(diff)))
    return tuple(changed)


def check_start(number: int, snapshot: VariableSnapshot | None, cells: int) -> int:
    """Return the number of the first cell to execute; raise InvalidInput if it is not possible."""
    last = 1 if snapshot is None else snapshot.number + 1
    if not 1 <= number <= min(last, cells):
        reason = (
            "There is no snapshot of its variables"
            if snapshot is None
            else f"Its variables were saved after cell {snapshot.number}"
        )
        raise InvalidInput(
            f"The job cannot go on from cell {number}. {reason}.",
            accepted=f"A cell from 1 to {min(last, cells)}.",
            field="from_cell",
        )
    return number
