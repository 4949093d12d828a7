"""Staging folders: written beside their target and renamed once they are complete."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
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
        yield draft
    except OSError as error:
        raise BackupFailed(f"{failed}: {error}.") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
