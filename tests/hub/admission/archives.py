"""Build archives of working folders for tests."""

from __future__ import annotations

import base64
import io
import tarfile


def packed(*members: tarfile.TarInfo, content: bytes = b"") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for member in members:
            archive.addfile(member, io.BytesIO(content[: member.size]))
    return buffer.getvalue()


def member(
    name: str, kind: bytes = tarfile.REGTYPE, *, size: int = 0, to: str = ""
) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.size, made.linkname = kind, size, to
    return made


def text(data: bytes) -> str:
    return base64.b64encode(data).decode()
