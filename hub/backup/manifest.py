"""What is in a backup: each file with its hash, and which Carrel wrote it."""

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
"""In the form of ``sha256sum``; damage to the manifest itself is found by it."""
STATE = "state"
FORMAT = 1
_HASH = re.compile(r"[0-9a-f]{64}")


class EntryKind(StrEnum):
    FILE = "file"
    FOLDER = "folder"
    LINK = "link"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestEntry:
    """One thing in the state folder.

    Attributes:
        path: below the state folder, with slashes.
        mode: its permissions there; in the backup everything is its owner's alone.
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
        """Raises ValueError where it leads out of the folder, or cannot be what it says."""
        path = PurePosixPath(self.path)
        if not path.parts or path.is_absolute() or ".." in path.parts or "\0" in self.path:
            raise ValueError(f"{self.path!r} is no path below a state folder")
        if self.kind is EntryKind.FILE and not _HASH.fullmatch(self.sha256):
            raise ValueError(f"{self.path!r} has no hash")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A whole backup.

    Attributes:
        version: of the Carrel that made it.
        revision: of the tables in ``carrel.db``.
        made_at: when the database was copied; everything else is as new as that, or newer.
        state: the folder that it was made of.
        homes: whether people's homes are in it.
        left_out: what was neither a file, a folder nor a link, or could not be read.
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
        # Names on disk are any bytes; in JSON they are escaped, so that the text is ASCII.
        digest = hashlib.sha256(text.encode()).hexdigest()
        write_private(folder / CHECKSUM, f"{digest}  {MANIFEST}\n")

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Raises InvalidInput where there is no backup, or not a whole one."""
        try:
            raw = (folder / MANIFEST).read_bytes()
            expected = (folder / CHECKSUM).read_text().split()[0]
        except (OSError, ValueError, IndexError) as error:
            raise InvalidInput(
                f"{folder} is no backup of Carrel's, or one that was not finished: {error}.",
                accepted="Name a folder that `carrel backup` has made.",
            ) from error
        if hashlib.sha256(raw).hexdigest() != expected:
            raise InvalidInput(
                f"{folder / MANIFEST} is damaged: it is not what {CHECKSUM} was made of.",
                accepted="Take another backup.",
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
            raise TypeError("its entries are no list")
        kinds = {field.name: str(field.type) for field in fields(cls)}
        for name, value in found.items():
            if kinds.get(name) not in (type(value).__name__, "float"):
                raise TypeError(f"{name} is not {kinds.get(name, 'known')}")
        return cls(
            **found,  # type: ignore[arg-type]  # names and types are checked above
            entries=tuple(_entry(each) for each in entries),
            left_out=tuple(map(str, left_out)),
        )


def _entry(found: dict[str, object]) -> ManifestEntry:
    kind = EntryKind(str(found["kind"]))
    return ManifestEntry(**(found | {"kind": kind})).checked()  # type: ignore[arg-type]  # what is wrong raises


def printable(path: str | Path) -> str:
    """A name from disk as text: bytes that are none are shown escaped."""
    return os.fsencode(path).decode(errors="backslashreplace")
