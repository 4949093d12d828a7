"""Responses that are files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self
from urllib.parse import unquote

from .calls import HttpAnswer

# The encoded name is the real one; the other is for programs that do not know it (RFC 6266).
_ENCODED_NAME = re.compile(r"filename\*=UTF-8''([^;]+)", re.IGNORECASE)
_PLAIN_NAME = re.compile(r"filename=\"([^\"]+)\"", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPart:
    """A part of a log; continue with ``offset=next_offset``."""

    content: bytes
    next_offset: int

    @classmethod
    def of(cls, answer: HttpAnswer, offset: int) -> Self:
        """``offset``: the requested offset."""
        until = answer.headers.get("X-Carrel-Offset", "")
        following = int(until) if until.isdecimal() else offset + len(answer.content)
        return cls(content=answer.content, next_offset=following)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFile:
    """The executed notebook, complete or so far."""

    name: str
    content: bytes

    @classmethod
    def of(cls, answer: HttpAnswer, request_id: str) -> Self:
        header = answer.headers.get("Content-Disposition", "")
        if encoded := _ENCODED_NAME.search(header):
            name = unquote(encoded[1])
        else:
            plain = _PLAIN_NAME.search(header)
            name = plain[1] if plain else f"{request_id}.ipynb"
        return cls(name=name, content=answer.content)
