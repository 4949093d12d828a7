"""Store contents by their SHA-256, as files: ``ROOT/ab/cdef…``.

A content is written to a temporary file, synced to disk, and then renamed: a content whose SHA-256
was returned survives a loss of power. Files are never overwritten, so that several threads may
store the same content.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from ...hub.errors import NotFound, Unavailable
from ...hub.files.safe_fs import to_disk

_SHA256 = re.compile(r"[0-9a-f]{64}")


class FolderBlobs:
    """``Blobs`` in a folder, whose subfolders are created with the first content."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._created = False

    def put(self, content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()
        path = self._path(digest)
        if not path.exists():
            try:
                self._write(path, content)
            except OSError as error:
                raise Unavailable(
                    f"The files cannot be stored: {error.strerror or error}.",
                    accepted="Nothing was stored. Try again in a moment.",
                ) from error
        return digest

    def open(self, sha256: str) -> BinaryIO:
        missing = NotFound(f"There is no content {sha256[:80]}.")
        if not _SHA256.fullmatch(sha256):
            raise missing
        try:
            return self._path(sha256).open("rb")
        except FileNotFoundError:
            raise missing from None

    def _path(self, digest: str) -> Path:
        return self._root / digest[:2] / digest[2:]

    def _create_folders(self) -> None:
        """Create all folders at once, so that submissions of a class do not wait for each."""
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in range(256):
            (self._root / f"{number:02x}").mkdir(mode=0o700, exist_ok=True)
        to_disk(self._root)
        self._created = True

    def _write(self, path: Path, content: bytes) -> None:
        if not self._created:
            self._create_folders()
        draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        try:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(descriptor)
            draft.rename(path)
            to_disk(path.parent)
        except OSError:
            with suppress(FileNotFoundError):
                draft.unlink()
            raise
