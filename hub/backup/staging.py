"""Staging folders: written beside their target and renamed once they are complete.

The process that writes one holds a lock on it, so that others can tell it from what an ended
process left. On file systems without locks, such folders are kept.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import BackupFailed, Conflict


@contextmanager
def drafted(target: Path, suffix: str, *, under_way: str, failed: str) -> Iterator[Path]:
    """Create a folder ``TARGET.SUFFIX``, and delete it afterwards unless it was renamed.

    Args:
        under_way: describes the operation of another process that has such a folder.
        failed: describes the result of a failed write.

    Raises:
        Conflict: the folder exists.
        BackupFailed: it cannot be created or written.
    """
    draft = target.with_name(f"{target.name}.{suffix}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BackupFailed(f"{target.parent} cannot be created: {error.strerror}.") from error
    try:
        draft.mkdir(mode=0o700)
    except FileExistsError:
        raise Conflict(
            f"{draft} exists: {under_way} there, or one was interrupted.",
            accepted="If none is running, delete the folder and try again.",
        ) from None
    except OSError as error:
        raise BackupFailed(f"{draft} cannot be created: {error.strerror}.") from error
    try:
        with _opened(draft) as descriptor:
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield draft
    except OSError as error:
        raise BackupFailed(f"{failed}: {error}.") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def remove_interrupted(folder: Path, pattern: str) -> list[Path]:
    """Delete the staging folders with such names that no process writes, and return them."""
    removed = []
    for draft in sorted(folder.glob(pattern)):
        with suppress(OSError), _opened(draft) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(draft)
            removed.append(draft)
    return removed


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
