"""The files of a prefix in the folder of an attempt: computed by one job, offered to others.

The kernel of the computation writes the header and the pickle, and what PyTorch has compiled. The
folder belongs to the owner of the job: it is read bounded, and no link in it is followed.
"""

from __future__ import annotations

import hashlib
import math
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from ...hub.attempts.compile_cache_side import COURSE
from ...hub.attempts.compile_caches import copy_cache, keep_cache, unlink_new
from ...hub.attempts.spec import OUTPUT
from ...hub.files.safe_fs import Owner, opened_file
from ...hub.records.json_value import parse_json
from .kernel_side import HEADER, LIMIT, PICKLE

NOTEBOOK: Final = "prefix.ipynb"
"""The executed notebook of the computation."""
_FILES: Final = {HEADER: HEADER, PICKLE: PICKLE, OUTPUT: NOTEBOOK}
_HEADER_BYTES: Final = 8 << 20
_NOTEBOOK_BYTES: Final = 64 << 20
_PIECE: Final = 1 << 20
_MOST: Final = {HEADER: _HEADER_BYTES, PICKLE: LIMIT, OUTPUT: _NOTEBOOK_BYTES}


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixHeader:
    """What is known of a saved prefix.

    Attributes:
        first: index of the first cell that is restored; cells before it run in each job.
        cells: index after the last one.
        seconds: the run time of the restored cells.
        data: the data folder of the course, empty if they do not read it.
        sha256: of the pickle.
    """

    first: int
    cells: int
    seconds: float
    data: str
    sha256: str


def read_header(folder: Path) -> PrefixHeader | None:
    """Return the header of the prefix in a folder; None without a valid one."""
    try:
        with opened_file(folder, HEADER) as file:
            found = parse_json(file.read(_HEADER_BYTES))
        if not isinstance(found, dict):
            return None
        header = PrefixHeader(
            first=int(found["first"]),
            cells=int(found["cells"]),
            seconds=float(found["seconds"]),
            data=str(found["data"]),
            sha256=str(found["sha256"]),
        )
    except (OSError, ValueError, TypeError, KeyError, OverflowError):
        return None
    fits = 0 <= header.first < header.cells and math.isfinite(header.seconds)
    return header if fits and header.seconds > 0 else None


def keep(attempt: Path, folder: Path) -> PrefixHeader | None:
    """Copy what a computation has saved into a new folder that only the service uses.

    Safe to repeat, also when the attempt's files are gone. Returns None, and leaves no folder, if
    the attempt has saved no valid prefix.

    Raises:
        OSError: the folder cannot be written.
    """
    known = read_header(folder)
    if known is not None:
        return known
    draft = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True, mode=0o700)
    try:
        for source, target in _FILES.items():
            with opened_file(attempt, source) as file:
                _copy(file, draft / target, most=_MOST[source], mode=0o400)
    except (FileNotFoundError, NotADirectoryError, _TooLong):
        shutil.rmtree(draft, ignore_errors=True)
        return None
    header = read_header(draft)
    if header is None or _sha256(draft / PICKLE) != header.sha256:
        shutil.rmtree(draft, ignore_errors=True)
        return None
    with suppress(FileNotFoundError, ValueError):
        keep_cache(attempt, draft / COURSE, {"request": folder.name}, unlink=False)
    shutil.rmtree(folder, ignore_errors=True)
    draft.rename(folder)
    return header


def offer(folder: Path, attempt: Path, *, owner: Owner | None = None) -> None:
    """Copy a kept prefix into the folder of an attempt, which may change its copy.

    Raises:
        OSError: a file is missing or cannot be copied.
    """
    for name in (NOTEBOOK, PICKLE, HEADER):  # the header last: without it there is no prefix
        draft = attempt / f".{name}.part"
        draft.unlink(missing_ok=True)
        with opened_file(folder, name) as file:
            _copy(file, draft, most=LIMIT + _NOTEBOOK_BYTES, mode=0o600, owner=owner)
        draft.replace(attempt / name)
    with suppress(FileNotFoundError):
        copy_cache(folder / COURSE, attempt / COURSE, mode=0o600, owner=owner)


def compiled_size(folder: Path) -> int:
    """Return the bytes of what the computation of a kept prefix has compiled; 0 for nothing."""
    try:
        return (folder / COURSE).stat().st_size
    except OSError:
        return 0


def delete_compiled(folder: Path) -> None:
    """Delete what the computation of a kept prefix has compiled. Raises OSError."""
    (folder / COURSE).unlink(missing_ok=True)


def withdraw_offer(attempt: Path) -> None:
    """Delete the files of a prefix from the folder of an attempt that needs them no more."""
    for name in (HEADER, PICKLE, NOTEBOOK):
        for each in (name, f".{name}.part"):
            with suppress(OSError):
                (attempt / each).unlink()


def discard(attempt: Path) -> None:
    """Delete what a computation has saved from the folder of its attempt; its notebook stays."""
    for name in (HEADER, PICKLE):
        for each in (name, f"{name}.part"):
            with suppress(OSError):
                (attempt / each).unlink()
    unlink_new(attempt)


class _TooLong(Exception):
    """A file is longer than the limit."""


def _copy(
    file: BinaryIO, target: Path, *, most: int, mode: int, owner: Owner | None = None
) -> None:
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with os.fdopen(descriptor, "wb") as copy:
        while piece := file.read(_PIECE):
            most -= len(piece)
            if most < 0:
                raise _TooLong
            copy.write(piece)
        if owner is not None:
            os.fchown(copy.fileno(), *owner)


def _sha256(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            found.update(piece)
    return found.hexdigest()
