"""Keeps the files as last fetched, the common base of the next merge.

They are outside of the user's folder, so that changes there do not change the base. A version is
one zip archive. The new one is stored before the folder is changed and named in its record after
that; only then are others removed. A crash in between leaves the version that the record names.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ...hub.files.filenames import draft_beside


@dataclass(frozen=True, slots=True)
class FetchedVersions:
    """The versions of all folders of one user, below ``root``."""

    root: Path

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let one session of the user at a time change a folder."""
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def put(self, folder: str, version: str, files: Mapping[str, bytes]) -> None:
        """Store a version of a folder atomically."""
        path = self._path(folder, version)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = draft_beside(path)
        try:
            with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, content in files.items():
                    archive.writestr(name, content)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)

    def get(self, folder: str, version: str) -> dict[str, bytes]:
        """Return a version; empty if it is not stored, or the archive is damaged."""
        try:
            with zipfile.ZipFile(self._path(folder, version)) as archive:
                return {name: archive.read(name) for name in archive.namelist()}
        except (OSError, zipfile.BadZipFile, EOFError, ValueError):
            return {}

    def keep_only(self, folder: str, version: str) -> None:
        """Remove the other versions of a folder."""
        kept = self._path(folder, version)
        for path in kept.parent.iterdir():
            if path != kept:
                path.unlink(missing_ok=True)

    def _path(self, folder: str, version: str) -> Path:
        key = hashlib.sha256(folder.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return self.root / key / f"{hashlib.sha256(version.encode()).hexdigest()[:32]}.zip"
