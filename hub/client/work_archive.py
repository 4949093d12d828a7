"""Pack a working folder as an archive for a job.

Files that match ``.carrelignore`` (syntax of .gitignore) or ``ALWAYS_IGNORED`` are left out;
``!NAME`` in ``.carrelignore`` includes a file again.
"""

from __future__ import annotations

import base64
import gzip
import io
import os
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pathspec import GitIgnoreSpec

from ..errors import InvalidInput, TooLarge

IGNORE_FILE = ".carrelignore"
ALWAYS_IGNORED = (
    *(".git/", ".hg/", ".svn/", "__pycache__/", ".ipynb_checkpoints/", ".venv/", "venv/"),
    *("node_modules/", ".mypy_cache/", ".pytest_cache/", ".ruff_cache/"),
    *(".DS_Store", "._*", "__MACOSX/", "Thumbs.db", "desktop.ini"),
)
MAX_ARCHIVE_BYTES = 32 * 2**20
MAX_ENTRIES = 10_000
MAX_UNPACKED_BYTES = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A file and its name in the archive."""

    path: Path
    name: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkArchive:
    """The files to upload with a job.

    Attributes:
        left_out: names of links and other entries that cannot be uploaded.
    """

    items: tuple[Item, ...]
    left_out: tuple[str, ...] = ()

    @property
    def size_bytes(self) -> int:
        return sum(item.size_bytes for item in self.items)


def collect(folder: Path) -> WorkArchive:
    """Collect all files below a folder, except ignored ones.

    Raises:
        InvalidInput: the folder or its ``.carrelignore`` cannot be read.
        TooLarge: the files exceed the limit of an upload; checked before packing.
    """
    ignored = _ignored(folder)
    items: list[Item] = []
    left_out: list[str] = []
    size = 0
    for path in _below(folder, folder, ignored):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not path.is_file():
            left_out.append(name)
            continue
        items.append(Item(path=path, name=name, size_bytes=path.stat().st_size))
        size += items[-1].size_bytes
        _check(folder, len(items), size)
    return WorkArchive(items=tuple(items), left_out=tuple(left_out))


def add_inputs(upload: WorkArchive, inputs: Sequence[Path]) -> WorkArchive:
    """Add files at the top of the working folder, under their own names.

    Raises:
        InvalidInput: a file cannot be read, or another file has the same name.
    """
    items = list(upload.items)
    paths = {item.name: item.path.resolve() for item in items}
    for path in inputs:
        if not path.is_file():
            raise InvalidInput(
                f"{path} is not a file.", accepted="--input takes one file at a time."
            )
        name, real = path.name, path.resolve()
        if paths.setdefault(name, real) != real:
            raise InvalidInput(
                f"{path} has the same name as {paths[name]}.",
                accepted="All inputs are at the top of the working folder: rename one of them.",
            )
        if all(item.name != name for item in items):
            items.append(Item(path=path, name=name, size_bytes=path.stat().st_size))
    extended = WorkArchive(items=tuple(items), left_out=upload.left_out)
    _check(Path(), len(items), extended.size_bytes)
    return extended


def pack(upload: WorkArchive) -> bytes:
    """Return the files as .tar.gz; of owner and permissions, only the executable bit is kept.

    Raises:
        InvalidInput: a file disappeared, or cannot be read.
        TooLarge: the archive is larger than the service accepts.
    """
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=6, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as archive,
    ):
        for item in upload.items:
            _add(archive, item)
            if buffer.tell() > MAX_ARCHIVE_BYTES:
                break
    content = buffer.getvalue()
    if len(content) > MAX_ARCHIVE_BYTES:
        raise TooLarge(
            f"The files of the job exceed {MAX_ARCHIVE_BYTES // 2**20} MiB when packed.",
            accepted=f"List unneeded files in {IGNORE_FILE}; store large data in your home on the "
            "site.",
        )
    return content


def encode(content: bytes) -> str:
    """Encode an archive for the body of a job."""
    return base64.b64encode(content).decode("ascii")


def safe_target(folder: Path, name: str) -> Path:
    """Return the path below ``folder`` for a file of a job.

    Raises:
        InvalidInput: the path would be outside of ``folder``.
    """
    parts = PurePosixPath(name).parts
    # A backslash is an ordinary character, except where it separates folders.
    forbidden = {"\0"} if os.sep == "/" else {"\0", os.sep}
    valid = name and not forbidden & set(name) and not name.startswith("/")
    target = folder.joinpath(*parts)
    root = folder.resolve()
    # Links in the folder are followed, and must not lead outside either.
    if not valid or ".." in parts or not parts or not target.resolve().is_relative_to(root):
        raise InvalidInput(f"The file {name!r} of the job is outside of {folder}.")
    return target


def _add(archive: tarfile.TarFile, item: Item) -> None:
    try:
        with item.path.open("rb") as file:
            status = os.fstat(file.fileno())
            entry = tarfile.TarInfo(item.name)
            entry.size, entry.mtime = status.st_size, int(status.st_mtime)
            entry.mode = 0o755 if status.st_mode & 0o100 else 0o644
            archive.addfile(entry, file)
    except OSError as error:
        raise InvalidInput(f"{item.path} cannot be read: {error.strerror or error}.") from error


def _check(folder: Path, entries: int, size_bytes: int) -> None:
    if entries > MAX_ENTRIES or size_bytes > MAX_UNPACKED_BYTES:
        raise TooLarge(
            f"{folder.resolve()} contains more than a job can upload "
            f"({MAX_ENTRIES:,} files, {MAX_UNPACKED_BYTES // 2**30} GiB).",
            accepted=f"List the files that the job does not need in {folder / IGNORE_FILE}.",
        )


def _ignored(folder: Path) -> GitIgnoreSpec:
    try:
        own = (folder / IGNORE_FILE).read_text("utf-8-sig").split("\n")
    except FileNotFoundError:
        own = []
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{folder / IGNORE_FILE} cannot be read: {error}.") from error
    try:
        return GitIgnoreSpec.from_lines([*ALWAYS_IGNORED, IGNORE_FILE, *own])
    except ValueError as error:
        raise InvalidInput(
            f"{folder / IGNORE_FILE} contains an invalid pattern: {error}.",
            accepted="Use the pattern syntax of .gitignore.",
        ) from error


def _below(top: Path, folder: Path, ignored: GitIgnoreSpec) -> Iterator[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be read: {error.strerror}.") from error
    for path in entries:
        name = path.relative_to(top).as_posix()
        directory = path.is_dir() and not path.is_symlink()
        if ignored.match_file(f"{name}/" if directory else name):
            continue
        if directory:
            yield from _below(top, path, ignored)
        else:
            yield path
