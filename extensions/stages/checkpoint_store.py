"""Checkpoints of a study: in memory up to a bound, then in files up to a bound.

A checkpoint that a later stage needs is never removed. The others serve later schedules: the oldest
are removed first. A lost checkpoint costs time and never a result, since its steps can run again.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SUFFIX = ".checkpoint"
_DRAFT_SECONDS = 3600
"""An older draft belongs to a process that was killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFiles:
    """Where checkpoints are kept.

    Attributes:
        folder: where all checkpoints are written at once, to survive the process; None to keep them
            in memory, and in a temporary folder what does not fit.
        keep: whether files that are not needed remain at the end of the process.
        memory: the most bytes in memory.
        disk: the most bytes of files; more only if all of them are needed.
    """

    folder: Path | None
    keep: bool
    memory: int
    disk: int


class CheckpointStore:
    """Bytes by key.

    Args:
        needed: by key how many later stages start from a checkpoint; the owner changes it.
    """

    def __init__(self, files: CheckpointFiles, *, needed: Mapping[str, int]) -> None:
        self._folder, self._durable = files.folder, files.folder is not None
        self._memory, self._disk, self._keep = files.memory, files.disk, files.keep
        self._needed = needed
        self._held: dict[str, bytes] = {}
        """Those in memory; the oldest first, as in the next one."""
        self._files: dict[str, int] = {}
        """Sizes of the files in bytes."""
        self._held_bytes = self._file_bytes = 0
        if files.folder is not None:
            self._open(files.folder)

    def put(self, key: str, data: bytes) -> None:
        """Keep a checkpoint; on return it is on disk if the store has a folder.

        Raises:
            OSError: the file cannot be written.
        """
        if self._durable:
            self._write(key, data)
        else:
            self._held_bytes += len(data) - len(self._held.pop(key, b""))
            self._held[key] = data
            while self._held_bytes > self._memory:
                oldest = next(iter(self._held))
                self._held_bytes -= len(self._held[oldest])
                self._write(oldest, self._held.pop(oldest))
        while self._file_bytes > self._disk:
            unneeded = next((each for each in self._files if not self._needed.get(each)), None)
            if unneeded is None:
                break
            self._remove(unneeded)

    def get(self, key: str) -> bytes | None:
        """Return a checkpoint; None if it has been removed."""
        if key in self._held:
            return self._held[key]
        if self._folder is None:
            return None
        try:
            return self._path(self._folder, key).read_bytes()
        except OSError:
            return None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what a copy of the study, in a snapshot of its notebook, can do without."""
        files: dict[str, Any] = (
            {} if self._durable else {"_folder": None, "_files": {}, "_file_bytes": 0}
        )
        return self.__dict__ | {"_held": {}, "_held_bytes": 0} | files

    def _open(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for part in folder.glob(".*.part"):
            if part.stat().st_mtime < time.time() - _DRAFT_SECONDS:
                part.unlink(missing_ok=True)
        found = [(path.stat(), path) for path in folder.glob(f"*{_SUFFIX}")]
        for status, path in sorted(found, key=lambda each: each[0].st_mtime_ns):
            self._files[path.name.removesuffix(_SUFFIX)] = status.st_size
        self._file_bytes = sum(self._files.values())
        if not self._keep:
            weakref.finalize(self, _remove_unneeded, folder, self._files, self._needed)

    def _write(self, key: str, data: bytes) -> None:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="carrel-stages-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        path = self._path(self._folder, key)
        draft = path.with_name(f".{path.name}.{os.getpid()}.part")
        with draft.open("wb") as file:
            file.write(data)
            file.flush()
            if self._durable:
                os.fsync(file.fileno())
        draft.replace(path)
        self._file_bytes += len(data) - self._files.pop(key, 0)
        self._files[key] = len(data)

    def _remove(self, key: str) -> None:
        self._file_bytes -= self._files.pop(key)
        if self._folder is not None:
            self._path(self._folder, key).unlink(missing_ok=True)

    @staticmethod
    def _path(folder: Path, key: str) -> Path:
        return folder / f"{key}{_SUFFIX}"


def _remove_unneeded(folder: Path, files: dict[str, int], needed: Mapping[str, int]) -> None:
    for key in files:
        if not needed.get(key):
            (folder / f"{key}{_SUFFIX}").unlink(missing_ok=True)
