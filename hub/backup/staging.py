"""A folder that is written in full beside its place before it is put there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import BackupFailed, Conflict


@contextmanager
def drafted(target: Path, suffix: str, *, under_way: str, failed: str) -> Iterator[Path]:
    """A new folder ``TARGET.SUFFIX``, which is gone afterwards unless it was renamed.

    Args:
        under_way: what another process with such a folder does there now.
        failed: what did not come about where something cannot be written.

    Raises:
        Conflict: there is such a folder already.
        BackupFailed: it cannot be made or filled.
    """
    draft = target.with_name(f"{target.name}.{suffix}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft.mkdir(mode=0o700)
    except FileExistsError:
        raise Conflict(
            f"{draft} exists: {under_way} there, or one was broken off.",
            accepted="Where none is, remove it and try again.",
        ) from None
    except OSError as error:
        raise BackupFailed(f"{draft} cannot be made: {error.strerror}.") from error
    try:
        yield draft
    except OSError as error:
        raise BackupFailed(f"{failed}: {error}.") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
