"""A private folder for Spark's temporary files, which a later one removes if its process was
killed."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

_PREFIX: Final = "carrel-spark-"
_LOCK: Final = "in-use"


def make() -> Path:
    """Return a new folder below TMPDIR that ends with this process; remove those of killed ones."""
    parent = Path(tempfile.gettempdir())
    for left in parent.glob(f"{_PREFIX}*"):
        _remove_unused(left)
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        if _is_locked(folder):
            atexit.register(_remove_own, folder, os.getpid())
            return folder
        shutil.rmtree(folder, ignore_errors=True)


def _is_locked(folder: Path) -> bool:
    """Lock a new folder; False if another process took it for one of a killed process meanwhile."""
    # The lock ends with the process; programs that it starts do not inherit it.
    lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(lock), os.stat(folder / _LOCK)):
            return True
    os.close(lock)
    return False


def _remove_own(folder: Path, process: int) -> None:
    """Remove the folder of this process; that of another one from which it was forked stays."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


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
