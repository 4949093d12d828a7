"""The manifest of a backup: its files with their hashes, and the version that wrote it."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Self

from ..errors import InvalidInput
from ..files.private_file import write_private

MANIFEST = "manifest.json"
CHECKSUM = "manifest.sha256"
"""Detects damage to the manifest itself, in the format of ``sha256sum``."""
STATE = "state"
FORMAT = 1
_HASH = re.compile(r"[0-9a-f]{64}")


class EntryKind(StrEnum):
    FILE = "file"
    FOLDER = "folder"
    LINK = "link"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestEntry:
    """One file, folder or link of the state folder.

    Attributes:
        path: below the state folder, with slashes.
        mode: its permissions there; in the backup only the owner has access.
        modified: seconds since 1970.
        size: bytes of a file.
        sha256: of a file.
        target: of a link.
    """

    path: str
    kind: EntryKind
    mode: int = 0o700
    modified: float = 0.0
    size: int = 0
    sha256: str = ""
    target: str = ""

    def checked(self) -> Self:
        """Return the entry. Raises ValueError if its path leaves the folder or its hash is bad."""
        path = PurePosixPath(self.path)
        if not path.parts or path.is_absolute() or ".." in path.parts or "\0" in self.path:
            raise ValueError(f"{self.path!r} is not a path below a state folder")
        if self.kind is EntryKind.FILE and not _HASH.fullmatch(self.sha256):
            raise ValueError(f"{self.path!r} has no hash")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The description of a complete backup.

    Attributes:
        version: version of Carrel that wrote it.
        revision: revision of the tables in ``carrel.db``.
        made_at: when the database was copied; all other files are not older.
        state: the state folder that was copied.
        homes: whether it includes home folders.
        left_out: entries that are not a file, folder or link, or could not be read.
    """

    version: str
    revision: str
    made_at: float
    state: str
    homes: bool
    entries: tuple[ManifestEntry, ...]
    left_out: tuple[str, ...] = ()

    @property
    def files(self) -> Iterator[ManifestEntry]:
        return (entry for entry in self.entries if entry.kind is EntryKind.FILE)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(entry.size for entry in self.files)

    def write(self, folder: Path) -> None:
        text = json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n"
        write_private(folder / MANIFEST, text)
        # File names are arbitrary bytes; JSON escapes them, so the text is ASCII.
        digest = hashlib.sha256(text.encode()).hexdigest()
        write_private(folder / CHECKSUM, f"{digest}  {MANIFEST}\n")

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Load the manifest. Raises InvalidInput for a missing, incomplete or damaged backup."""
        try:
            raw = (folder / MANIFEST).read_bytes()
            expected = (folder / CHECKSUM).read_text().split()[0]
        except (OSError, ValueError, IndexError) as error:
            raise InvalidInput(
                f"{folder} is not a complete backup of Carrel: {error}.",
                accepted="Name a folder that `carrel backup` has written.",
            ) from error
        if hashlib.sha256(raw).hexdigest() != expected:
            raise InvalidInput(
                f"{folder / MANIFEST} is damaged: it does not match {CHECKSUM}.",
                accepted="Use another backup.",
            )
        try:
            return cls._of(json.loads(raw))
        except (ValueError, TypeError, KeyError) as error:
            raise InvalidInput(
                f"{folder / MANIFEST} cannot be read: {error}.",
                accepted=f"This Carrel reads backups of format {FORMAT}.",
            ) from error

    @classmethod
    def _of(cls, found: dict[str, object]) -> Self:
        if found.pop("format", None) != FORMAT:
            raise ValueError("it has another format")
        entries, left_out = found.pop("entries"), found.pop("left_out")
        if not isinstance(entries, list) or not isinstance(left_out, list):
            raise TypeError("its entries are not a list")
        kinds = {field.name: str(field.type) for field in fields(cls)}
        for name, value in found.items():
            if kinds.get(name) not in (type(value).__name__, "float"):
                raise TypeError(f"{name} is not {kinds.get(name, 'known')}")
        return cls(
            **found,  # type: ignore[arg-type]  # names and types are checked above
            entries=tuple(_entry(values) for values in entries),
            left_out=tuple(map(str, left_out)),
        )


def _entry(values: dict[str, object]) -> ManifestEntry:
    kind = EntryKind(str(values["kind"]))
    return ManifestEntry(**(values | {"kind": kind})).checked()  # type: ignore[arg-type]  # raises TypeError


def printable(path: str | Path) -> str:
    """Return a file name as text, with bytes that are not UTF-8 escaped."""
    return os.fsencode(path).decode(errors="backslashreplace")
