"""Responses that are files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self
from urllib.parse import unquote

from .calls import HttpAnswer

_FILE_NAME = re.compile(r"filename\*=UTF-8''([^;]+)|filename=\"([^\"]+)\"")


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
        named = _FILE_NAME.search(answer.headers.get("Content-Disposition", ""))
        name = (unquote(named[1]) if named[1] else named[2]) if named else f"{request_id}.ipynb"
        return cls(name=name, content=answer.content)
