"""Access to folders that untrusted programs write: by descriptor, without following links.

Programs of users may change an attempt's folder or a home while the service reads or writes
there. A path that was checked may lead elsewhere a moment later; a descriptor does not.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, TypeAlias

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A pipe that a job left there must not block the reader.
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""For ``os.open``: a file to read; a link is not followed."""
_SOMETHING_ELSE_IS_THERE = frozenset({errno.EEXIST, errno.ENOTDIR, errno.ELOOP})
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
"""For ``os.open``: a new file; what is there already is neither overwritten nor followed."""

Owner: TypeAlias = tuple[int, int]
"""User and group id."""


@contextmanager
def opened_folder(path: Path, *steps: str) -> Iterator[int]:
    """Open the folder that the steps lead to from ``path``; links are not followed."""
    descriptor = os.open(path, FOLDER)
    try:
        for step in steps:
            below = os.open(step, FOLDER, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def opened_below(above: int, name: str) -> Iterator[int]:
    """Open a folder in an open folder; links are not followed."""
    descriptor = os.open(name, FOLDER, dir_fd=above)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def opened_file(path: Path, *steps: str) -> BinaryIO:
    """Open a regular file. Raises OSError for another kind of file, or a link on the path."""
    with opened_folder(path, *steps[:-1]) as above:
        descriptor = os.open(steps[-1], FILE, dir_fd=above)
    file = os.fdopen(descriptor, "rb")
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise FileNotFoundError(steps[-1])
    return file


def write_into(folder: Path, name: str, text: str, *, owner: Owner | None = None) -> None:
    """Write a 0600 file atomically; an existing entry is replaced, never followed.

    ``owner``: the new owner; None leaves the file to the service's user.
    """
    with opened_folder(folder) as above:
        draft = f".{name}.{secrets.token_hex(8)}"
        descriptor = os.open(draft, NEW_FILE, 0o600, dir_fd=above)
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(text)
                file.flush()
                if owner is not None:
                    os.fchown(descriptor, *owner)
                os.fsync(descriptor)
            os.rename(draft, name, src_dir_fd=above, dst_dir_fd=above)
        except OSError:
            os.unlink(draft, dir_fd=above)
            raise


def add_file(folder: Path, name: str, content: bytes) -> None:
    """Add a 0600 file that belongs to the owner of the folder, unless the name is taken.

    ``name`` may contain folders (``course/notes.md``), which are created if missing.
    """
    *steps, last = name.split("/")
    with ExitStack() as opened:
        above = opened.enter_context(opened_folder(folder))
        try:
            for step in steps:
                above = added_folder(above, step)
                opened.callback(os.close, above)
            descriptor = os.open(last, NEW_FILE, 0o600, dir_fd=above)
        except OSError as error:
            if error.errno in _SOMETHING_ELSE_IS_THERE:
                return  # Also for a link: nothing is written through it.
            raise
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            give_to_owner_of(above, descriptor)


def add_folder(folder: Path, name: str, *, mode: int = 0o700) -> None:
    """Add a folder that belongs to the owner of the parent, unless the name is taken."""
    with opened_folder(folder) as above:
        try:
            os.mkdir(name, 0o700, dir_fd=above)
        except FileExistsError:
            return
        with opened_below(above, name) as made:
            os.fchmod(made, mode)
            give_to_owner_of(above, made)


def added_folder(above: int, name: str) -> int:
    """Return a descriptor of the folder of that name, created if missing."""
    try:
        os.mkdir(name, 0o700, dir_fd=above)
    except FileExistsError:
        return os.open(name, FOLDER, dir_fd=above)
    descriptor = os.open(name, FOLDER, dir_fd=above)
    give_to_owner_of(above, descriptor)
    return descriptor


def give_to_owner_of(above: int, descriptor: int) -> None:
    if os.geteuid() == 0:
        about = os.fstat(above)
        os.fchown(descriptor, about.st_uid, about.st_gid)


def give_folder(path: Path, owner: Owner) -> None:
    """Change the owner of a folder, not of its contents."""
    with opened_folder(path) as descriptor:
        about = os.fstat(descriptor)
        if (about.st_uid, about.st_gid) != owner:
            os.fchown(descriptor, *owner)


def give_tree(path: Path, owner: Owner) -> None:
    """Change the owner of a folder and its contents, unless the folder has that owner.

    The folder comes last, so that an interrupted call is repeated. Only for folders into which
    only the service could write so far.
    """
    with opened_folder(path) as top:
        about = os.fstat(top)
        if (about.st_uid, about.st_gid) == owner:
            return
        for _, folders, files, at in os.fwalk(dir_fd=top):
            for name in (*folders, *files):
                os.chown(name, *owner, dir_fd=at, follow_symlinks=False)
        os.fchown(top, *owner)


def to_disk(path: Path) -> None:
    """Sync a folder of the service to disk: syncing a file does not sync its name."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lies_in(folder: Path, name: str) -> bool:
    """Whether the folder has an entry of this name, including a broken link."""
    return os.path.lexists(folder / name)
