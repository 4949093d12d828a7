"""Responses that a browser saves or shows without running their content."""

from __future__ import annotations

import base64
import io
import unicodedata
import zipfile
from collections.abc import Iterable, Mapping
from functools import partial
from typing import BinaryIO

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from ...schemas.courses import ContentOut

SAFE_CONTENT = {
    # Output of a job can be any HTML: none of it may run here.
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "X-Content-Type-Options": "nosniff",
}


def attachment(name: str) -> str:
    """Return a Content-Disposition that is valid for any file name; no other code writes one.

    Programs that do not know ``filename*`` (RFC 6266) get the name in ASCII, without accents.
    """
    letters = (c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._- ") else "_" for c in letters)
    encoded = "".join(
        chr(b) if chr(b).isascii() and (chr(b).isalnum() or chr(b) in "._-") else f"%{b:02X}"
        for b in name.encode("utf-8", "replace")
    )
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}"


def saved_json(name: str, text: str) -> Response:
    """Return a JSON text that a browser saves under a name."""
    return Response(
        text,
        media_type="application/json",
        headers={"Content-Disposition": attachment(name)},
    )


def zipped(name: str, folder: str, files: Iterable[ContentOut]) -> Response:
    """Return the files as NAME.zip, in a folder."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.writestr(f"{folder}/{file.name}", base64.b64decode(file.content))
    return Response(
        packed.getvalue(),
        media_type="application/zip",
        headers={"Content-Disposition": attachment(f"{name}.zip")},
    )


_PART_BYTES = 256 * 1024


class OpenFileResponse(StreamingResponse):
    """Stream an open file to its end, and close it.

    Its length is not declared: a running job may still write to it, or truncate it.
    """

    def __init__(self, file: BinaryIO, *, headers: Mapping[str, str]) -> None:
        super().__init__(
            iter(partial(file.read, _PART_BYTES), b""),
            media_type="application/octet-stream",
            headers=headers,
        )
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._file.close()
