"""Homes and outputs in the state folder: the ``Files`` port of the local engine.

A job may still write an attempt's folder while it is read. Every step into it is therefore
opened relative to the descriptor of its parent, and links are never followed.
"""

from __future__ import annotations

import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ..errors import NotFound, TooLarge
from ..interfaces.files import HomeUse, OutputFiles
from .filenames import safe_name
from .home_folders import HomeFolders
from .safe_fs import FOLDER, opened_file, opened_folder

INPUT = "input.ipynb"
ARCHIVE = "work.tar.gz"
OUTPUT = "output.ipynb"
LOG = "log.txt"
FILES = "files"
"""The folder behind ``$CARREL_OUTPUT_DIR``."""
MAX_LISTED = 10_000
MAX_OUTPUT_BYTES = 128 << 20
"""Maximum size of an executed notebook, which is read as a whole."""
MAX_DEPTH = 32
FULL_BYTES = 1 << 20
"""A disk with less space than this is full."""


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """Homes in ``homes/USER`` and outputs in ``outputs/REQUEST/ATTEMPT``."""

    homes: HomeFolders
    outputs: Path

    def home(self, owner: str) -> Path:
        return self.homes.ready(owner)

    def home_use(self, owner: str) -> HomeUse | None:
        return self.homes.use(owner)

    def input_path(self, request_id: str) -> Path:
        return self._folder(request_id) / INPUT

    def put_input(self, request_id: str, notebook: bytes) -> None:
        _write(self.input_path(request_id), notebook)

    def archive_path(self, request_id: str) -> Path:
        return self._folder(request_id) / ARCHIVE

    def put_archive(self, request_id: str, archive: bytes) -> None:
        _write(self.archive_path(request_id), archive)

    def is_full(self) -> bool:
        try:
            found = os.statvfs(self.outputs)
        except OSError:
            return False
        return found.f_bavail * found.f_frsize < FULL_BYTES

    def discard(self, request_id: str) -> None:
        shutil.rmtree(self._folder(request_id))

    def keeps(self, request_id: str) -> bool:
        return (self.outputs / safe_name(request_id)).is_dir()

    def attempt_folder(self, request_id: str, epoch: int) -> Path:
        folder = self._folder(request_id) / str(epoch)
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder

    def output(self, request_id: str, epoch: int) -> bytes | None:
        try:
            with self._open(request_id, epoch, (OUTPUT,)) as file:
                content = file.read(MAX_OUTPUT_BYTES + 1)
        except OSError:
            return None
        if len(content) > MAX_OUTPUT_BYTES:
            raise TooLarge(
                f"The executed notebook of {request_id} is larger than "
                f"{MAX_OUTPUT_BYTES // 2**20} MiB.",
                accepted="Write large results to $CARREL_OUTPUT_DIR instead of showing them in "
                "cells; `carrel output --files` downloads that folder.",
            )
        return content

    def log(
        self,
        request_id: str,
        epoch: int,
        *,
        offset: int = 0,
        limit: int = 1 << 20,
        member: int = 0,
    ) -> bytes:
        folder = (
            self.outputs / safe_name(request_id) / (f"{epoch}.m{member}" if member else str(epoch))
        )
        try:
            with opened_file(folder, LOG) as file:
                end = file.seek(0, os.SEEK_END)
                file.seek(offset if offset >= 0 else max(0, end + offset))
                return file.read(limit)
        except OSError:
            return b""

    def files(self, request_id: str, epoch: int) -> OutputFiles:
        walk = _Walk()
        try:
            with opened_folder(self.outputs / safe_name(request_id) / str(epoch) / FILES) as top:
                walk.into(top, "", 0)
        except OSError:
            return OutputFiles(files={})  # Not created yet, deleted, or no longer a folder.
        return OutputFiles(files=walk.found, left_out=walk.left_out)

    def open_file(self, request_id: str, epoch: int, name: str) -> BinaryIO:
        steps = tuple(name.split("/"))
        plain = all(step not in ("", ".", "..") and "\0" not in step for step in steps)
        try:
            if plain and len(steps) <= MAX_DEPTH:
                return self._open(request_id, epoch, (FILES, *steps))
        except (OSError, UnicodeEncodeError):
            pass
        raise NotFound(
            f"{request_id} has no output file {name[:200]!r}.",
            accepted="Its files are listed at …/files.",
        )

    def _open(self, request_id: str, epoch: int, steps: tuple[str, ...]) -> BinaryIO:
        return opened_file(self.outputs / safe_name(request_id) / str(epoch), *steps)

    def _folder(self, request_id: str) -> Path:
        folder = self.outputs / safe_name(request_id)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder


class _Walk:
    """Lists the regular files below a folder that may change during the walk."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[int, float]] = {}
        self.left_out = 0
        self._seen = 0

    def into(self, folder: int, prefix: str, depth: int) -> None:
        with os.scandir(folder) as entries:
            for entry in entries:
                if self._seen >= MAX_LISTED:
                    self.left_out += 1
                    return
                self._seen += 1
                try:
                    self._take(entry, folder, f"{prefix}{entry.name}", depth)
                except OSError:
                    continue  # It was deleted during the walk.

    def _take(self, entry: os.DirEntry[str], folder: int, name: str, depth: int) -> None:
        about = entry.stat(follow_symlinks=False)
        if stat.S_ISDIR(about.st_mode) and depth + 1 < MAX_DEPTH:
            below = os.open(entry.name, FOLDER, dir_fd=folder)
            try:
                self.into(below, f"{name}/", depth + 1)
            finally:
                os.close(below)
        elif stat.S_ISREG(about.st_mode) and _is_text(name):
            self.found[name] = (about.st_size, about.st_mtime)
        else:
            self.left_out += 1


def _is_text(name: str) -> bool:
    """Whether the name can be encoded in JSON: file names on disk are arbitrary bytes."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _write(target: Path, content: bytes) -> None:
    draft = target.with_name(target.name + ".new")
    with draft.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(target)
