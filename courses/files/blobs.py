"""Contents by their SHA-256, as files: ``ROOT/ab/cdef…``.

A content is written under a name of its own, brought to the disk, and only then given its name:
whoever got a SHA-256 from here has the content, also after a loss of power. Nothing is ever
written over, so that any number of threads may bring the same one.
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
    """``courses.ports.Blobs`` below a folder, laid out when the first content comes."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._laid_out = False

    def put(self, content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()
        path = self._path(digest)
        if not path.exists():
            try:
                self._write(path, content)
            except OSError as error:
                raise Unavailable(
                    f"The files cannot be stored: {error.strerror or error}.",
                    accepted="Nothing was taken. Try again in a moment.",
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

    def _lay_out(self) -> None:
        """All folders at once: a class that hands in at once need not wait for each."""
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in range(256):
            (self._root / f"{number:02x}").mkdir(mode=0o700, exist_ok=True)
        to_disk(self._root)
        self._laid_out = True

    def _write(self, path: Path, content: bytes) -> None:
        if not self._laid_out:
            self._lay_out()
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
