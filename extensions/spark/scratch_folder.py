"""A private folder for Spark's temporary files, which a later one removes if its process was
killed."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

_PREFIX: Final = "carrel-spark-"
_LOCK: Final = "in-use"


def make() -> Path:
    """Return a new folder below TMPDIR that ends with this process; remove those of killed ones."""
    parent = Path(tempfile.gettempdir())
    for left in parent.glob(f"{_PREFIX}*"):
        _remove_unused(left)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    # The lock ends with the process; programs that it starts do not inherit it.
    lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _remove_unused(folder: Path) -> None:
    try:
        if folder.lstat().st_uid != os.geteuid():
            return
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:  # no folder of ours, or one that is being made
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except OSError:  # in use
        pass
    finally:
        os.close(lock)
