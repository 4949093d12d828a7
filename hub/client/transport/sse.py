"""Parse server-sent events (the part of the standard that Carrel uses)."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One event of a stream."""

    event: str
    data: str
    id: str = ""


@dataclass(slots=True)
class Parser:
    """Assembles messages from lines: an empty line ends a message, comments are ignored."""

    _event: str = ""
    _id: str = ""
    _data: list[str] = field(default_factory=list)

    def feed(self, line: str) -> Message | None:
        """Add a line without its line end; return the message that it completes, if any."""
        if not line:
            return self._complete()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "event":
                self._event = value
            case "data":
                self._data.append(value)
            case "id":
                self._id = value
        return None

    def _complete(self) -> Message | None:
        event, data, id_ = self._event or "message", self._data, self._id
        self._event, self._data, self._id = "", [], ""
        return Message(event=event, data="\n".join(data), id=id_) if data else None


@dataclass(slots=True)
class LineSplitter:
    """Splits a stream into lines at line feeds only.

    ``iter_lines`` of httpx also splits at U+2028, U+0085 and others, which JSON may contain.
    """

    _rest: bytes = b""

    def feed(self, part: bytes) -> list[str]:
        """Add bytes; return the lines that they complete, without their line ends."""
        *whole, self._rest = (self._rest + part).split(b"\n")
        return [line.removesuffix(b"\r").decode("utf-8", "replace") for line in whole]
