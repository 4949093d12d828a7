"""Read files and parts of logs from responses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self
from urllib.parse import unquote

from .calls import HttpResponse

# The encoded name takes precedence; the plain name is for older programs (RFC 6266).
_ENCODED_NAME = re.compile(r"filename\*=UTF-8''([^;]+)", re.IGNORECASE)
_PLAIN_NAME = re.compile(r"filename=\"([^\"]+)\"", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPart:
    """A part of a log; continue with ``offset=next_offset``."""

    content: bytes
    next_offset: int

    @classmethod
    def of(cls, response: HttpResponse, offset: int) -> Self:
        """Return the part in a response to a call with this ``offset``."""
        header = response.headers.get("X-Carrel-Offset", "")
        next_offset = int(header) if header.isdecimal() else offset + len(response.content)
        return cls(content=response.content, next_offset=next_offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFile:
    """The executed notebook; partial while the job runs."""

    name: str
    content: bytes

    @classmethod
    def of(cls, response: HttpResponse, request_id: str) -> Self:
        header = response.headers.get("Content-Disposition", "")
        if encoded := _ENCODED_NAME.search(header):
            name = unquote(encoded[1])
        else:
            plain = _PLAIN_NAME.search(header)
            name = plain[1] if plain else f"{request_id}.ipynb"
        return cls(name=name, content=response.content)
