"""Read an untrusted SQLite database as bytes, whole and consistent, without opening it.

SQLite opens paths: it would follow links, and obey a journal that names further files to delete.
So the bytes are read by a descriptor, under the lock of SQLite's own readers
(https://www.sqlite.org/lockingv3.html), which keeps writers from changing the file meanwhile.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from ...hub.files.safe_fs import opened_file

MOST_BYTES: Final = 256 << 20
PATIENCE: Final = 5.0
"""Seconds to wait for a writer."""
_AGAIN_SECONDS: Final = 0.02
_PENDING: Final = 0x40000000
"""The byte that a writer locks to keep further readers out."""
_RESERVED: Final = _PENDING + 1
"""The byte that the one writer locks."""
_SHARED: Final = (_PENDING + 2, 510)
_HELD: Final = frozenset({errno.EACCES, errno.EAGAIN})


def read(folder: Path, name: str) -> bytes:
    """The bytes of a database in the folder.

    Raises:
        FileNotFoundError: there is none.
        OSError: it is a link, not a file, too large, locked for too long, or partly written.
    """
    with _opened(folder, name) as file, _shared(file):
        size = os.fstat(file.fileno()).st_size
        if size > MOST_BYTES:
            raise OSError(errno.EFBIG, f"it is larger than {MOST_BYTES >> 20} MiB")
        content = file.read(size)
        if not _is_locked(file, _RESERVED) and _has_journal(folder, name):
            raise OSError(errno.EBUSY, "its last change was not completed")
        return content


def _opened(folder: Path, name: str) -> BinaryIO:
    try:
        return opened_file(folder, name)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, f"{name} is a link") from error
        raise


@contextmanager
def _shared(file: BinaryIO) -> Iterator[None]:
    """Hold the read lock of the open file.

    A lock of the process would be lost when another thread closes the file.
    """
    until = time.monotonic() + PATIENCE
    while not _lock_shared(file):
        if time.monotonic() > until:
            raise OSError(errno.EBUSY, "it is being written")
        time.sleep(_AGAIN_SECONDS)
    yield  # Closing the file releases it.


def _lock_shared(file: BinaryIO) -> bool:
    if not _set(file, fcntl.F_RDLCK, _PENDING, 1):
        return False
    try:
        return _set(file, fcntl.F_RDLCK, *_SHARED)
    finally:
        _set(file, fcntl.F_UNLCK, _PENDING, 1)


def _set(file: BinaryIO, kind: int, start: int, length: int) -> bool:
    try:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, _flock(kind, start, length))
    except OSError as error:
        if error.errno in _HELD:
            return False
        raise
    return True


def _is_locked(file: BinaryIO, byte: int) -> bool:
    asked = _flock(fcntl.F_WRLCK, byte, 1)
    return bool(_kind_of(fcntl.fcntl(file, fcntl.F_OFD_GETLK, asked)) != fcntl.F_UNLCK)


def _flock(kind: int, start: int, length: int) -> bytes:
    """``struct flock`` of 64-bit Linux."""
    return struct.pack("hhqqi4x", kind, 0, start, length, 0)


def _kind_of(flock: bytes) -> int:
    return int(struct.unpack_from("h", flock)[0])


def _has_journal(folder: Path, name: str) -> bool:
    """Whether there is a journal of an unfinished change; a finished one is absent or zeroed."""
    try:
        with _opened(folder, f"{name}-journal") as journal:
            return journal.read(1) not in (b"", b"\0")
    except FileNotFoundError:
        return False
