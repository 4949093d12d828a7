"""Save the output of a job in a home, without overwriting anything.

Programs of the owner write the home meanwhile: every step is opened relative to the descriptor of
its parent, and links are never followed.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final

from ..errors import CarrelError, Conflict, TooLarge
from ..interfaces.files import Files
from .filenames import numbered
from .safe_fs import FILE, NEW_FILE, added_folder, give_to_owner_of, opened_folder

MOST_BYTES: Final = 1 << 30
_CHUNK: Final = 1 << 20
_MOST_NAMES: Final = 100
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedOutput:
    """A file to save: its name, which may contain folders, and how to open it."""

    name: str
    size: int
    open: Callable[[], BinaryIO]


@dataclass(frozen=True, slots=True)
class HomeOutputs:
    """Writes into the home of ``owner``."""

    files: Files

    def save(self, owner: str, request_id: str, contents: Iterable[SavedOutput]) -> int:
        """Save files in ``folder_of(request_id)`` and return how many are new.

        A file that is there already, with the same content, is not saved again. Another file of
        the same name is kept: the new one gets a number (``train-1.ipynb``).

        Raises:
            Conflict: something that is not a folder is in the way.
            TooLarge: the files are too large together, or the home is full.
        """
        wanted = list(contents)
        total = sum(each.size for each in wanted)
        if total > MOST_BYTES:
            raise TooLarge(
                f"The output of {request_id} has {total / 2**30:.1f} GiB, which is too large to be "
                "saved from this page.",
                accepted=f"Run `carrel output {request_id} --files` in a session.",
            )
        home = self.files.home(owner)
        folder = folder_of(request_id)
        return sum(_saved(home, f"{folder}/{each.name}", each) for each in wanted)


def folder_of(request_id: str) -> str:
    """The folder of a home with the saved output of a job, relative to the home."""
    return f"jobs/{request_id}"


def _saved(home: Path, path: str, content: SavedOutput) -> bool:
    *steps, name = path.split("/")
    with _folder(home, steps) as above, content.open() as source:
        for candidate in islice(numbered(name), _MOST_NAMES):
            try:
                descriptor = os.open(candidate, NEW_FILE, 0o600, dir_fd=above)
            except FileExistsError:
                if _is_same(above, candidate, source):
                    return False
                source.seek(0)
                continue
            _fill(above, descriptor, candidate, source)
            return True
    raise Conflict(
        f"Your home has {_MOST_NAMES} other files named like {path}.",
        accepted="Move or rename them, then save again.",
    )


@contextmanager
def _folder(home: Path, steps: list[str]) -> Iterator[int]:
    with ExitStack() as opened:
        above = opened.enter_context(opened_folder(home))
        for number, step in enumerate(steps, start=1):
            try:
                above = added_folder(above, step)
            except OSError as error:
                raise _refusal(error, "/".join(steps[:number])) from error
            opened.callback(os.close, above)
        yield above


def _fill(above: int, descriptor: int, name: str, source: BinaryIO) -> None:
    try:
        with os.fdopen(descriptor, "wb") as file:
            while chunk := source.read(_CHUNK):
                file.write(chunk)
            file.flush()
            give_to_owner_of(above, file.fileno())
    except OSError as error:
        os.unlink(name, dir_fd=above)
        raise _refusal(error, name) from error


def _refusal(error: OSError, path: str) -> CarrelError:
    if error.errno in _FULL:
        return TooLarge(
            "Your home is full.", accepted="Delete files that you no longer need, then save again."
        )
    return Conflict(
        f"{path} in your home is a file or a link, where a folder is needed. Nothing was changed.",
        accepted="Move or rename it, then save again.",
    )


def _is_same(above: int, name: str, source: BinaryIO) -> bool:
    """Return whether a regular file of this name has this content; links do not count."""
    try:
        file = os.fdopen(os.open(name, FILE, dir_fd=above), "rb")
    except OSError:  # a link; or a folder, which ``fdopen`` refuses
        return False
    with file:
        while chunk := source.read(_CHUNK):
            if file.read(len(chunk)) != chunk:
                return False
        return not file.read(1)
