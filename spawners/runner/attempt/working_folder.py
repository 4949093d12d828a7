"""Choose a job's working folder: its home, a folder below it, or the unpacked upload."""

from __future__ import annotations

import gzip
import shutil
import tarfile
import zlib
from pathlib import Path, PurePosixPath
from typing import Final

from ....hub.attempts.output_limits import OutputLimits, format_size
from ....hub.attempts.spec import WORK, AttemptSpec
from .outcome_messages import StartFailed

_FOLDER: Final = 0o755
_MOST_OPEN: Final = 0o755
_LEAST_OPEN: Final = 0o600
_MAX_READ: Final = 1 << 20
"""tarfile reads files in smaller pieces; only a malicious header needs more."""


def working_folder(order: AttemptSpec, folder: Path) -> Path:
    """Return the working folder.

    Raises:
        StartFailed: the folder is missing or not below the home, or the upload is invalid.
    """
    if not order.archive_path:
        return below_home(Path(order.home), order.job.workdir)
    work = folder / WORK
    work.mkdir(mode=0o700)
    try:
        unpack(Path(order.archive_path), work, order.limits)
    except (OSError, EOFError, zlib.error, RecursionError, tarfile.TarError) as error:
        shutil.rmtree(work, ignore_errors=True)
        raise StartFailed(f"the uploaded folder cannot be unpacked: {error}") from error
    except StartFailed:
        shutil.rmtree(work, ignore_errors=True)
        raise
    return below_home(work, order.job.workdir)


def below_home(home: Path, workdir: str) -> Path:
    root = home.resolve()
    try:
        folder = (root / workdir).resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise StartFailed(f"the working folder {workdir} cannot be used: {error}") from error
    if not folder.is_relative_to(root):
        raise StartFailed(f"the working folder {workdir} is not below the home")
    if not folder.is_dir():
        raise StartFailed(f"the working folder {workdir} does not exist")
    return folder


def unpack(archive: Path, target: Path, limits: OutputLimits) -> None:
    """Unpack an archive; every entry is checked first, and nothing outside ``target`` is written.

    The limit applies to declared sizes: tarfile never writes more than the declared size.
    """
    total = 0
    with _BoundedGzip(archive) as stream, tarfile.open(fileobj=stream, mode="r:") as tar:
        for number, entry in enumerate(tar, start=1):
            _check(entry)
            total += entry.size
            if number > limits.archive_entries:
                raise StartFailed(
                    f"the uploaded folder has more than {limits.archive_entries:,} entries"
                )
            if total > limits.archive:
                raise StartFailed(
                    f"the uploaded folder is larger than {format_size(limits.archive)} unpacked"
                )
            # Python before 3.11.4, as in Debian 12, has no filters; this one sets the same modes.
            entry.mode = _FOLDER if entry.isdir() else entry.mode & _MOST_OPEN | _LEAST_OPEN
            if hasattr(tarfile, "data_filter"):
                tar.extract(entry, target, filter="data")
            else:
                tar.extract(entry, target)


class _BoundedGzip(gzip.GzipFile):
    """A gzip file that refuses to read large pieces into memory."""

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0 or size > _MAX_READ:
            raise StartFailed("the uploaded folder has a header that is far too long")
        return super().read(size)


def _check(entry: tarfile.TarInfo) -> None:
    name = PurePosixPath(entry.name)
    if name.is_absolute() or ".." in name.parts:
        raise StartFailed(f"the uploaded folder has a path that leads outside: {entry.name}")
    if not (entry.isreg() or entry.isdir()):
        raise StartFailed(
            f"the uploaded folder contains a link or a special file, which is not accepted: "
            f"{entry.name}"
        )
    if entry.issparse():
        raise StartFailed(f"the uploaded folder contains a sparse file: {entry.name}")
