"""Answers of the service that are files and not JSON."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self
from urllib.parse import unquote

from .calls import HttpAnswer

_FILE_NAME = re.compile(r"filename\*=UTF-8''([^;]+)|filename=\"([^\"]+)\"")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPart:
    """A stretch of a log; ask with ``offset=next_offset`` for what follows."""

    content: bytes
    next_offset: int

    @classmethod
    def of(cls, answer: HttpAnswer, offset: int) -> Self:
        """``offset``: what was asked for."""
        until = answer.headers.get("X-Carrel-Offset", "")
        following = int(until) if until.isdecimal() else offset + len(answer.content)
        return cls(content=answer.content, next_offset=following)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFile:
    """The executed notebook, whole or as far as it is."""

    name: str
    content: bytes

    @classmethod
    def of(cls, answer: HttpAnswer, request_id: str) -> Self:
        named = _FILE_NAME.search(answer.headers.get("Content-Disposition", ""))
        name = (unquote(named[1]) if named[1] else named[2]) if named else f"{request_id}.ipynb"
        return cls(name=name, content=answer.content)
