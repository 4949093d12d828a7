"""Copies files into and out of a backup with their hashes; SQLite databases by online backup.

Running jobs may still write outputs and homes. Every step into them is opened relative to the
descriptor of its parent, and links are never followed.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

from ..errors import BackupFailed
from .manifest import EntryKind, ManifestEntry, printable

Advance = Callable[[int], None]
"""Receives the number of further bytes that are copied."""
CHUNK = 1 << 20
MAX_DEPTH = 64
MAX_PATH_BYTES = 3000
SQLITE_HEADER = b"SQLite format 3\0"
SQLITE_COMPANIONS = ("-wal", "-shm", "-journal")
"""Files beside an open database; the online backup includes their contents."""
_BUSY_SECONDS = 30.0
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A pipe that a job left there must not block the reader.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class CopyProgress(Protocol):
    """Reports the progress of the copy."""

    def say(self, text: str) -> None: ...

    def bar(self, label: str, total: int) -> AbstractContextManager[Advance]:
        """Show a progress bar of ``total`` bytes."""


def everything(_name: str) -> bool:
    return True


@dataclass(slots=True)
class Copier:
    """Copies parts of a state folder below ``target`` and records the manifest entries."""

    target: Path
    advance: Advance
    entries: list[ManifestEntry] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def database(self, source: Path, path: str) -> None:
        """Copy a database as of one moment, while other processes write to it."""
        copy = self.target / path
        about = source.stat()
        os.close(os.open(copy, _NEW, 0o600))
        copy_database(source, copy)
        size, digest = hashed(copy)
        self.advance(size)
        self._note(path, EntryKind.FILE, about, size=size, sha256=digest)

    def file(self, source: Path, path: str) -> None:
        """Copy a file."""
        self._file(str(source), None, path)

    def tree(self, source: Path, path: str, keep: Callable[[str], bool] = everything) -> None:
        """Copy a folder, which may be missing; ``keep`` selects among its direct entries."""
        try:
            folder = os.open(source, _FOLDER)
        except FileNotFoundError:
            return
        try:
            self._folder(folder, path, keep, depth=0)
        finally:
            os.close(folder)

    def _folder(self, folder: int, path: str, keep: Callable[[str], bool], depth: int) -> None:
        (self.target / path).mkdir(mode=0o700, parents=not depth)
        self._note(path, EntryKind.FOLDER, os.fstat(folder))
        with os.scandir(folder) as found:
            names = sorted(item.name for item in found if keep(item.name))
        for name in names:
            below = f"{path}/{name}"
            try:
                self._item(name, folder, below, depth)
            except FileNotFoundError:
                continue  # It was deleted during the copy.
            except PermissionError:
                self.left_out.append(printable(below))

    def _item(self, name: str, folder: int, path: str, depth: int) -> None:
        about = os.stat(name, dir_fd=folder, follow_symlinks=False)
        too_deep = depth + 1 >= MAX_DEPTH or len(os.fsencode(path)) > MAX_PATH_BYTES
        if stat.S_ISDIR(about.st_mode) and not too_deep:
            below = os.open(name, _FOLDER, dir_fd=folder)
            try:
                self._folder(below, path, everything, depth + 1)
            finally:
                os.close(below)
        elif stat.S_ISREG(about.st_mode) and not too_deep:
            self._file(name, folder, path)
        elif stat.S_ISLNK(about.st_mode):
            target = os.readlink(name, dir_fd=folder)
            self._note(path, EntryKind.LINK, about, target=target)
        else:
            self.left_out.append(printable(path))

    def _file(self, name: str, folder: int | None, path: str) -> None:
        try:
            descriptor = os.open(name, _FILE, dir_fd=folder)
        except OSError as error:
            if isinstance(error, FileNotFoundError | PermissionError):
                raise
            self.left_out.append(printable(path))  # A link or a socket replaced it meanwhile.
            return
        with os.fdopen(descriptor, "rb") as source:
            about = os.fstat(descriptor)
            if not stat.S_ISREG(about.st_mode):
                self.left_out.append(printable(path))
                return
            size, digest = copy_stream(source, self.target / path, self.advance)
        self._note(path, EntryKind.FILE, about, size=size, sha256=digest)

    def _note(
        self,
        path: str,
        kind: EntryKind,
        about: os.stat_result,
        *,
        size: int = 0,
        sha256: str = "",
        target: str = "",
    ) -> None:
        self.entries.append(
            ManifestEntry(
                path=path,
                kind=kind,
                # Without setuid, setgid and sticky bits, which a restore must not set.
                mode=stat.S_IMODE(about.st_mode) & 0o777,
                modified=about.st_mtime,
                size=size,
                sha256=sha256,
                target=target,
            )
        )


def copy_stream(source: BinaryIO, target: Path, advance: Advance) -> tuple[int, str]:
    """Copy into a new file; return the size and hash of the written bytes."""
    size, digest = 0, hashlib.sha256()
    with os.fdopen(os.open(target, _NEW, 0o600), "wb") as copy:
        while chunk := source.read(CHUNK):
            copy.write(chunk)
            digest.update(chunk)
            size += len(chunk)
            advance(len(chunk))
    return size, digest.hexdigest()


def hashed(path: Path, advance: Advance = lambda _: None) -> tuple[int, str]:
    """Return the size and hash of a file. Raises OSError if it is not a file, or is a link."""
    size, digest = 0, hashlib.sha256()
    with os.fdopen(os.open(path, _FILE), "rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
            size += len(chunk)
            advance(len(chunk))
    return size, digest.hexdigest()


def is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(SQLITE_HEADER)) == SQLITE_HEADER


def copy_database(source: Path, target: Path) -> None:
    """Copy a database by SQLite's online backup, while other processes read and write it.

    All pages are copied in one step. With several steps SQLite would restart the copy after
    every write in between, and never finish beside a busy service.

    Raises:
        BackupFailed: the database is damaged, or stays locked.
    """
    uri = f"{source.resolve().as_uri()}?mode=ro"
    try:
        with (
            closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS)) as original,
            closing(sqlite3.connect(target, isolation_level=None)) as copy,
        ):
            original.backup(copy)
            # A single file without a WAL; the next process to open it sets its own mode.
            copy.execute("PRAGMA journal_mode = DELETE")
            (found,) = copy.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        raise BackupFailed(f"The database {source} cannot be copied: {error}.") from error
    if found != "ok":
        raise BackupFailed(f"The database {source} is damaged: {found}.")


def size_of(folder: Path) -> int:
    """Return the approximate bytes of all files below a folder that may change meanwhile."""
    total, left = 0, [folder]
    while left:
        try:
            with os.scandir(left.pop()) as found:
                for item in found:
                    if item.is_dir(follow_symlinks=False):
                        left.append(Path(item.path))
                    elif item.is_file(follow_symlinks=False):
                        total += item.stat(follow_symlinks=False).st_size
        except (FileNotFoundError, PermissionError, NotADirectoryError):
            continue
    return total
