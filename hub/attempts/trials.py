"""The trials of a sweep in the folder of an attempt: what has run, with which result.

The runner appends a line to ``trials.jsonl`` whenever a trial starts or ends. The folder belongs to
the owner of the job, so that the service reads it like anything of a user: bounded, and following
no link.
"""

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from ..files.safe_fs import FOLDER, added_folder, opened_file, opened_folder, write_into
from ..records.json_value import Json, parse_json
from .reports import number
from .spec import FILES

TRIALS: Final = "trials.jsonl"
EARLIER_TRIALS: Final = "earlier-trials.jsonl"
"""The lines of the attempt before, from which the runner takes over the finished trials."""
STOPPED_TRIALS: Final = "stopped-trials.json"
"""The trials that users have stopped, as a list; the service writes it, the runner reads it."""
_MOST_BYTES: Final = 32 << 20
_MOST_STOPPED_BYTES: Final = 1 << 18
_MESSAGE: Final = 500
_NAMES, _NAME = 100, 100
_DEEPEST: Final = 16
_STOP: Final = threading.Lock()
"""Only the service writes the list of stopped trials, and it is one process."""


class TrialState(StrEnum):
    """What has become of a trial; one without a line has not started."""

    WAITING = "waiting"
    """It starts anew in this attempt, with the values that a search chose in an earlier one."""
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    PRUNED = "pruned"
    """Stopped early by the search, since others were better; it does not run again."""
    STOPPED = "stopped"
    """By a user; it does not run again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRecord:
    """The newest line of a trial.

    Attributes:
        number: from 1.
        at: when it started or ended.
        seconds: the time that its cells took, those that it shares included.
        message: why it failed, or when it was pruned.
        reported: the last value of each name that it has reported.
        values: its parameters, if a search has chosen them; otherwise the space tells them.
        steps: how many values of the objective the pruner of a search has seen.
    """

    number: int
    state: TrialState
    at: float
    seconds: float = 0.0
    message: str = ""
    reported: Mapping[str, float] = field(default_factory=dict)
    values: Mapping[str, Json] = field(default_factory=dict)
    steps: int = 0


def notebook_name(number: int) -> str:
    """Return the name of the executed notebook of a trial, in the files that the job keeps."""
    return f"trial-{number:04}.ipynb"


def files_name(number: int) -> str:
    """Return the name of the folder of a trial's own files, beside its notebook."""
    return f"trial-{number:04}"


def reports_name(number: int) -> str:
    """Return the name of the file with the reported values of a trial, in the attempt's folder."""
    return f"reports-{number:04}.jsonl"


def add_trials(folder: Path, records: Iterable[TrialRecord]) -> None:
    """Append lines, in one write."""
    # Each line begins anew, after one that a full disk has cut off.
    lines = "".join("\n" + json.dumps(_as_json(record)) + "\n" for record in records)
    with (folder / TRIALS).open("a", encoding="utf-8") as file:
        file.write(lines)


def _as_json(record: TrialRecord) -> dict[str, object]:
    reported = {
        name: value if math.isfinite(value) else str(value)
        for name, value in record.reported.items()
    }
    return asdict(record) | {"reported": reported}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialLines:
    """What was read of a file of trials.

    Attributes:
        file: its device and inode.
        size: the bytes of the complete lines.
        found: the newest line of each trial, by number; lines that are none are left out.
    """

    file: tuple[int, int] = (0, 0)
    size: int = 0
    found: Mapping[int, TrialRecord] = field(default_factory=dict)


def read_trials(folder: Path, name: str = TRIALS) -> Mapping[int, TrialRecord]:
    """Return the newest line of each trial, by number; lines that are none are left out."""
    return read_on(folder, name, TrialLines()).found


def read_on(folder: Path, name: str, known: TrialLines) -> TrialLines:
    """Return the trials of a file, of which only the lines after the ``known`` ones are read."""
    try:
        with opened_file(folder, name) as opened:
            about = os.fstat(opened.fileno())
            file = about.st_dev, about.st_ino
            if file != known.file or about.st_size < known.size:
                known = TrialLines(file=file)
            opened.seek(known.size)
            lines = opened.read(max(0, _MOST_BYTES - known.size))
    except OSError:
        return TrialLines()
    lines = lines[: lines.rfind(b"\n") + 1]
    if not lines:
        return known
    found = dict(known.found)
    for line in lines.decode("utf-8", "replace").split("\n"):
        with suppress(ValueError, TypeError, KeyError, RecursionError):
            record = _record(json.loads(line))  # a line as the runner writes it, up to 20,000
            found[record.number] = record
    return TrialLines(file=file, size=known.size + len(lines), found=found)


def _record(found: object) -> TrialRecord:
    if not isinstance(found, dict) or not isinstance(found["number"], int):
        raise TypeError
    return TrialRecord(
        number=found["number"],
        state=TrialState(found["state"]),
        at=float(found["at"]),
        seconds=float(found["seconds"]),
        message=str(found["message"])[:_MESSAGE],
        reported=_numbers(found.get("reported")),
        values=_values(found.get("values")),
        steps=int(found.get("steps", 0)),
    )


def _numbers(found: object) -> dict[str, float]:
    if not isinstance(found, dict):
        return {}
    pairs = list(found.items())[:_NAMES]
    return {name[:_NAME]: number(value) for name, value in pairs}  # a text such as "nan", too


def _values(found: object) -> dict[str, Json]:
    """Return the values of a search; none if they are no finite numbers, text, and so on."""
    if not isinstance(found, dict) or not all(map(_is_scalar, found.values())):
        return {}
    return found


def _is_scalar(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | int)


def finished_trials(records: Mapping[int, TrialRecord]) -> dict[int, TrialRecord]:
    """Return the trials that do not run again: those that succeeded, were pruned or stopped."""
    states = (TrialState.SUCCEEDED, TrialState.PRUNED, TrialState.STOPPED)
    return {n: one for n, one in records.items() if one.state in states}


def has_results(records: Mapping[int, TrialRecord]) -> bool:
    """Whether a later attempt has to know the records: of finished trials, or of chosen values."""
    return bool(finished_trials(records)) or any(one.values for one in records.values())


def read_stopped(folder: Path) -> frozenset[int]:
    """Return the numbers of the trials that users have stopped."""
    try:
        with opened_file(folder, STOPPED_TRIALS) as file:
            found = parse_json(file.read(_MOST_STOPPED_BYTES))
    except (OSError, ValueError):
        return frozenset()
    numbers = found if isinstance(found, list) else []
    return frozenset(each for each in numbers if isinstance(each, int))


def stop_trial(folder: Path, number: int) -> None:
    """Tell the runner to stop a trial; safe to repeat, from several threads. Raises OSError."""
    about = folder.stat()
    owner = (about.st_uid, about.st_gid) if os.geteuid() == 0 else None
    with _STOP:
        text = json.dumps(sorted({*read_stopped(folder), number}))
        write_into(folder, STOPPED_TRIALS, text, owner=owner)


def hand_over_trials(earlier: Path, folder: Path) -> None:
    """Link what the finished trials of an attempt have left into a new one; safe to repeat.

    Raises:
        OSError: a file cannot be linked.
    """
    with opened_folder(earlier) as old, opened_folder(folder) as new:
        _link(old, STOPPED_TRIALS, new, STOPPED_TRIALS)
    every = (read_trials(earlier, name) for name in (TRIALS, EARLIER_TRIALS))
    records = next(filter(has_results, every), None)
    if records is None:
        return
    finished = finished_trials(records)
    with opened_folder(earlier) as old, opened_folder(folder) as new:
        with suppress(FileNotFoundError), opened_folder(earlier, FILES) as files:
            target = _same_folder(files, new, FILES)
            try:
                for number in finished:
                    for name in (notebook_name(number), files_name(number)):
                        _link(files, name, target, name)
            finally:
                os.close(target)
        for number in finished:
            _link(old, reports_name(number), new, reports_name(number))
        # Last, so that a trial that counts as finished has its files.
        for name in (TRIALS, EARLIER_TRIALS):
            _link(old, name, new, EARLIER_TRIALS)


def _same_folder(folder: int, above: int, name: str) -> int:
    """Return the folder of that name, created if missing, with the owner of another one.

    The folder above may get its owner only when the attempt starts.
    """
    made = added_folder(above, name)
    if os.geteuid() == 0:
        about = os.fstat(folder)
        os.fchown(made, about.st_uid, about.st_gid)
    return made


def _link(above: int, name: str, target: int, new_name: str, depth: int = 0) -> None:
    """Link a file, or the files of a folder, unless the name is taken; links stay links."""
    try:
        folder = os.open(name, FOLDER, dir_fd=above)
    except FileNotFoundError:
        return
    except OSError:  # not a folder
        with suppress(FileExistsError):
            os.link(name, new_name, src_dir_fd=above, dst_dir_fd=target, follow_symlinks=False)
        return
    try:
        below = _same_folder(folder, target, new_name)
        try:
            for entry in os.listdir(folder) if depth < _DEEPEST else ():
                _link(folder, entry, below, entry, depth + 1)
        finally:
            os.close(below)
    finally:
        os.close(folder)
