"""Checks an uploaded archive of a working folder without unpacking it.

Nothing is written to disk here. The runner applies the same rules again when it unpacks.
"""

from __future__ import annotations

import base64
import binascii
import io
import tarfile
import zlib
from pathlib import PurePosixPath

from ..errors import InvalidInput, TooLarge

MAX_ARCHIVE_BYTES = 32 * 1024 * 1024
MAX_ENTRIES = 10_000
MAX_UNPACKED_BYTES = 1024 * 1024 * 1024
MAX_NAME_BYTES = 1024
_FIELD = "archive"
_ACCEPTED = (
    "A .tar.gz of plain files and folders with relative names: "
    f"at most {MAX_ARCHIVE_BYTES >> 20} MiB packed, {MAX_UNPACKED_BYTES >> 30} GiB unpacked and "
    f"{MAX_ENTRIES:,} entries, no links."
)
_READ_BYTES = 64 * 1024
# tarfile calls itself for each of several headers of one entry.
_TAR_ERRORS = (
    tarfile.TarError,
    zlib.error,
    EOFError,
    ValueError,
    OverflowError,
    RecursionError,
)
_HEADER_BYTES = 64 * 1024
"""Of one tar header; a longer one is an attack on memory."""
_HEADERS_BYTES = 32 * 1024 * 1024
"""Of all headers together: three kilobytes an entry."""


def read_archive(text: str) -> bytes:
    """Decode an archive from base64 and check it.

    Raises:
        TooLarge: it exceeds a limit, packed or unpacked.
        InvalidInput: not a .tar.gz, or one with links, special files or names outside of it.
    """
    # Four characters encode three bytes, so the size is known before decoding.
    if len(text) > (MAX_ARCHIVE_BYTES + 2) // 3 * 4:
        raise _too_large(f"The archive has more than {MAX_ARCHIVE_BYTES >> 20} MiB.")
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise _refused("The archive is not base64.") from None
    check_archive(data)
    return data


def check_archive(data: bytes) -> None:
    """Read every header. Raises what ``read_archive`` raises."""
    entries = size = 0
    try:
        with tarfile.open(fileobj=_Unpacked(data), mode="r:", errorlevel=2) as archive:
            while (member := archive.next()) is not None:
                # tarfile keeps the headers of every entry.
                archive.members.clear()  # type: ignore[attr-defined]
                entries += 1
                size += member.size
                if entries > MAX_ENTRIES:
                    raise _too_large(f"The archive has more than {MAX_ENTRIES:,} entries.")
                _check_member(member)
                if size > MAX_UNPACKED_BYTES:
                    raise _too_large(
                        f"The archive unpacks to more than {MAX_UNPACKED_BYTES >> 30} GiB."
                    )
    except _TAR_ERRORS as error:
        raise _refused(f"The archive cannot be read: {error or type(error).__name__}.") from error


def _check_member(member: tarfile.TarInfo) -> None:
    name = member.name
    shown = repr(name[:80])
    if member.issym() or member.islnk():
        raise _refused(f"The archive contains a link, {shown}.")
    if not (member.isreg() or member.isdir()) or member.issparse():
        raise _refused(f"The archive contains {shown}, which is neither a plain file nor a folder.")
    try:
        length = len(name.encode())
    except UnicodeEncodeError:
        raise _refused(f"The archive contains a name that is not UTF-8: {shown}.") from None
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name or "\\" in name:
        raise _refused(f"The archive contains the name {shown}, which leads out of its folder.")
    if length > MAX_NAME_BYTES:
        raise _refused(f"The archive contains a name of {length:,} bytes.")


class _Unpacked(io.RawIOBase):
    """The tar inside a .tar.gz: forward reads only, up to the size limit."""

    def __init__(self, packed: bytes) -> None:
        self._packed = memoryview(packed)
        self._unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        self._ready = b""
        self._at = 0
        self._headers = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence != io.SEEK_SET or offset < self._at:
            raise io.UnsupportedOperation("read forward only")
        while self._at < offset and self._some(min(offset - self._at, _READ_BYTES)):
            pass
        return self._at

    def read(self, size: int | None = -1, /) -> bytes:
        # File contents are skipped by ``seek``: only headers are read.
        if size is None or not 0 <= size <= _HEADER_BYTES:
            raise tarfile.ReadError("one of its headers is too long")
        self._headers += size
        if self._headers > _HEADERS_BYTES:
            raise tarfile.ReadError("its headers are too long")
        parts = []
        while size and (part := self._some(size)):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _some(self, most: int) -> bytes:
        """Return up to ``most`` of the next bytes; empty at the end."""
        while not self._ready and not self._unpacker.eof:
            pending = self._unpacker.unconsumed_tail or self._packed[:_READ_BYTES]
            if not self._unpacker.unconsumed_tail:
                self._packed = self._packed[_READ_BYTES:]
            self._ready = self._unpacker.decompress(pending, _READ_BYTES)
            if not pending and not self._ready and not self._unpacker.eof:
                raise EOFError("it ends too early")
        part, self._ready = self._ready[:most], self._ready[most:]
        self._at += len(part)
        if self._at > MAX_UNPACKED_BYTES + MAX_ENTRIES * _READ_BYTES:
            raise _too_large(f"The archive unpacks to more than {MAX_UNPACKED_BYTES >> 30} GiB.")
        return part


def _refused(message: str) -> InvalidInput:
    return InvalidInput(message, accepted=_ACCEPTED, field=_FIELD)


def _too_large(message: str) -> TooLarge:
    return TooLarge(message, accepted=_ACCEPTED, field=_FIELD)
