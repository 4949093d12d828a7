"""Check a bundle of files that is sent to or by students, and compute its SHA-256.

Nothing is written to disk here. A bundle that is accepted can be unpacked on every current
operating system: no name leads out of its folder, and no two names are equal on a file system that
ignores case or normalizes Unicode.
"""

from __future__ import annotations

import hashlib
import io
import stat
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from ...hub.errors import InvalidInput, TooLarge
from ...hub.schemas.names import described, hidden_in

MAX_FILES = 500
MAX_FILE_BYTES = 32 << 20
MAX_BYTES = 32 << 20
MAX_NAME_BYTES = 512
MAX_PART_BYTES = 200
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
"""zipfile unpacks these in bounded pieces; of the others one read returns everything."""
_OTHER_METHODS = {9: "Deflate64", zipfile.ZIP_BZIP2: "bzip2", zipfile.ZIP_LZMA: "LZMA"}
_ENCRYPTED = 0x1
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
)
_MAX_DIRECTORY_BYTES = 1 << 20
_FORBIDDEN = frozenset('\\:*?"<>|')
"""Not allowed in names on some systems, where ``\\`` separates folders."""
_JUNK_FOLDER = "__macosx"
_JUNK_FILES = frozenset({".ds_store", "icon\r", "thumbs.db", "desktop.ini"})
_JUNK_PREFIX = "._"
"""What macOS and Windows add to folders and archives by themselves: left out."""
_UTF8_NAME = 0x800
_DEVICES = frozenset(
    ("CON", "PRN", "AUX", "NUL", *(f"{d}{n}" for d in ("COM", "LPT") for n in "123456789"))
)
_ACCEPTED = (
    f"Plain files with relative names: at most {MAX_FILES}, {MAX_BYTES >> 20} MiB together, "
    "no links, no '..', and no two names that differ only in case."
)


@dataclass(frozen=True, slots=True)
class FileBundle:
    """Checked files, sorted by name."""

    files: Mapping[str, bytes]

    @classmethod
    def of(cls, files: Iterable[tuple[str, bytes]]) -> Self:
        """Check files; their names are normalized to Unicode's composed form.

        Files that macOS and Windows add by themselves are left out.

        Raises:
            InvalidInput: a name is not accepted, or there is no file.
            TooLarge: too many, or too much.
        """
        found: dict[str, bytes] = {}
        seen: dict[str, str] = {}
        size = 0
        for given, content in files:
            if _is_junk(given):
                continue
            name = checked_name(given)
            _check_unique(name, seen)
            found[name] = content
            size += len(content)
            _check_size(name, len(content), len(found), size)
        if not found:
            raise _refused("There is no file in it.")
        _check_folders(seen)
        return cls(dict(sorted(found.items())))

    @property
    def sha256(self) -> str:
        """Hash of all names and contents: of the output of ``sha256sum``, sorted by name."""
        return folder_sha256({name: sha256(content) for name, content in self.files.items()})

    @property
    def size(self) -> int:
        return sum(len(content) for content in self.files.values())


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def folder_sha256(files: Mapping[str, str]) -> str:
    """Hash of the lines ``HASH  NAME``, sorted by name."""
    lines = "".join(f"{files[name]}  {name}\n" for name in sorted(files))
    return sha256(lines.encode())


def _is_junk(name: str) -> bool:
    *folders, file = name.casefold().split("/")
    return _JUNK_FOLDER in folders or file in _JUNK_FILES or file.startswith(_JUNK_PREFIX)


def checked_name(given: str) -> str:
    """A normalized name that is safe below any folder. Raises InvalidInput."""
    shown = repr(given[:80])
    try:
        name = unicodedata.normalize("NFC", given)
        length = len(name.encode())
    except UnicodeEncodeError:
        raise _refused(f"The name {shown} is not Unicode text.") from None
    parts = name.split("/")
    if name.startswith("/") or ".." in parts or "\\" in name:
        raise _refused(f"The name {shown} leads out of its folder.")
    if length > MAX_NAME_BYTES or any(len(part.encode()) > MAX_PART_BYTES for part in parts):
        raise _refused(f"The name {shown} is too long.")
    if hidden := hidden_in(name):
        raise _refused(f"The name {shown} has the hidden character {described(hidden)}.")
    if _FORBIDDEN & set(name):
        raise _refused(f"The name {shown} has a character that not every system takes.")
    if any(part.casefold() == ".git" for part in parts):
        raise _refused(f"The name {shown} is reserved: graders may run git in the folder.")
    if any(part.upper() in _DEVICES for part in parts):
        raise _refused(f"The name {shown} is that of a device on some systems.")
    if any(part in {"", "."} or part != part.strip() or part.endswith(".") for part in parts):
        raise _refused(f"The name {shown} is odd: a part of it is empty, or ends oddly.")
    return name


def unpacked(archive: bytes) -> FileBundle:
    """The files of a .zip archive, without empty folders.

    Raises:
        InvalidInput, TooLarge: of the archive, or as ``FileBundle.of``.
    """
    try:
        file = _ZipFile(archive)
        with zipfile.ZipFile(file) as zipped:
            file.opened = True
            members = zipped.infolist()
            if len(members) > 2 * MAX_FILES:
                raise _too_large(f"The archive has {len(members):,} entries.")
            for member in members:
                _check_member(member)
            return FileBundle.of(_members(zipped, members))
    except _ZIP_ERRORS as error:
        raise _refused(f"The archive cannot be read: {error}.") from error


class _ZipFile(io.BytesIO):
    """Limits the directory of an archive, which zipfile reads at once when it opens the archive.

    Its entries take ten times their size in memory.
    """

    def __init__(self, archive: bytes) -> None:
        super().__init__(archive)
        self._size = len(archive)
        self.opened = False

    def read(self, size: int | None = -1, /) -> bytes:
        left = max(self._size - self.tell(), 0)
        wanted = left if size is None or size < 0 else min(size, left)
        if not self.opened and wanted > _MAX_DIRECTORY_BYTES:
            raise _too_large("The archive has too many entries.")
        return super().read(wanted)


def _check_member(member: zipfile.ZipInfo) -> None:
    shown = repr(member.filename[:80])
    if member.flag_bits & _ENCRYPTED:
        raise _refused(f"{shown} in the archive is encrypted.")
    if member.compress_type not in _METHODS:
        method = _OTHER_METHODS.get(member.compress_type, "an unknown method")
        raise InvalidInput(
            f"{shown} in the archive is compressed with {method}.",
            accepted="A .zip archive whose files are stored or deflated, the default of zip tools.",
            field="files",
        )


def _members(
    zipped: zipfile.ZipFile, members: Iterable[zipfile.ZipInfo]
) -> Iterable[tuple[str, bytes]]:
    left = MAX_BYTES
    for member in members:
        mode = member.external_attr >> 16
        if stat.S_ISLNK(mode):
            raise _refused(f"The archive holds a link, {member.filename[:80]!r}.")
        name = _member_name(member)
        if name.endswith("/"):
            checked_name(name.rstrip("/"))
            continue
        if mode and not stat.S_ISREG(mode) and stat.S_IFMT(mode):
            raise _refused(f"{member.filename[:80]!r} is not a plain file.")
        with zipped.open(member) as file:
            # The size that it states is not trusted.
            content = file.read(left + 1)
        if len(content) > left:
            raise _too_large(f"The archive unpacks to more than {MAX_BYTES >> 20} MiB.")
        left -= len(content)
        yield name, content


def _member_name(member: zipfile.ZipInfo) -> str:
    """The name as the archiving program meant it.

    PowerShell separates folders by backslashes; macOS writes UTF-8 without saying so, and zipfile
    then takes it for the character set of DOS.
    """
    name = member.filename
    if not member.flag_bits & _UTF8_NAME:
        with suppress(UnicodeError):
            name = name.encode("cp437").decode()
    return name.replace("\\", "/")


def _check_unique(name: str, seen: dict[str, str]) -> None:
    key = name.casefold()
    if key in seen:
        same = seen[key] == name
        said = f"{name!r} is there twice." if same else f"{seen[key]!r} and {name!r} are too alike."
        raise _refused(said)
    seen[key] = name


def _check_folders(seen: Mapping[str, str]) -> None:
    """Refuse a file with the name of a folder, and two spellings of a folder."""
    folders: dict[str, str] = {}
    for name in seen.values():
        parts = name.split("/")
        for depth in range(1, len(parts)):
            folder = "/".join(parts[:depth])
            known = folders.setdefault(folder.casefold(), folder)
            if known != folder:
                raise _refused(f"The folders {known!r} and {folder!r} are too alike.")
            if folder.casefold() in seen:
                raise _refused(f"{folder!r} is a file and a folder.")


def _check_size(name: str, size: int, files: int, together: int) -> None:
    if files > MAX_FILES:
        raise _too_large(f"It has more than {MAX_FILES} files.")
    if size > MAX_FILE_BYTES:
        raise _too_large(f"The file {name!r} has {size / 2**20:.0f} MiB.")
    if together > MAX_BYTES:
        raise _too_large(f"The files have more than {MAX_BYTES >> 20} MiB together.")


def _refused(sentence: str) -> InvalidInput:
    return InvalidInput(sentence, accepted=_ACCEPTED, field="files")


def _too_large(sentence: str) -> TooLarge:
    return TooLarge(sentence, accepted=_ACCEPTED, field="files")
