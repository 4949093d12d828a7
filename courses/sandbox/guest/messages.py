"""What crosses the wall of a cage: plain data in messages of bounded length."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final, Protocol, TypeAlias, cast

Json: TypeAlias = "str | int | float | bool | Sequence[Json] | Mapping[str, Json] | None"
Message: TypeAlias = "Mapping[str, Json]"

_HEAD: Final = 4
_CHUNK: Final = 1 << 18


class Garbled(Exception):
    """What came is no message, or one that is too long."""


def encode(message: Message) -> bytes:
    """Raises Garbled where a value is not plain."""
    try:
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise Garbled(f"not plain data: {error}") from error
    # Half a surrogate pair is text to Python and to nobody else.
    body = text.encode("utf-8", "replace")
    return len(body).to_bytes(_HEAD, "big") + body


class TooLong(Garbled):
    """A message of more bytes than are read."""


class MessageBuffer:
    """Puts messages together from what arrives in pieces."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._pieces = bytearray()
        self._whole: deque[Message] = deque()

    def feed(self, data: bytes) -> None:
        self._pieces += data
        while len(self._pieces) >= _HEAD:
            length = int.from_bytes(self._pieces[:_HEAD], "big")
            if length > self._most:
                raise TooLong(f"a message of {length} bytes; at most {self._most} are read")
            if len(self._pieces) < _HEAD + length:
                return
            self._whole.append(_decode(bytes(self._pieces[_HEAD : _HEAD + length])))
            del self._pieces[: _HEAD + length]

    def take(self) -> Message | None:
        return self._whole.popleft() if self._whole else None


def _decode(body: bytes) -> Message:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Garbled(f"no message: {error}") from error
    if not isinstance(found, dict):
        raise Garbled("no message: an object is expected")
    return cast("Message", found)


class Endpoint(Protocol):
    """One end of a line: what a socket can do of it."""

    def fileno(self) -> int: ...

    def recv(self, most: int, /) -> bytes: ...

    def sendall(self, data: bytes, /) -> None: ...

    def close(self) -> None: ...


class MessageChannel:
    """Messages over a line; whoever hangs up ends it."""

    def __init__(self, end: Endpoint, most_bytes: int) -> None:
        self.end = end
        self.most_bytes = most_bytes
        self._inbox = MessageBuffer(most_bytes)
        self._lock = threading.Lock()

    def fileno(self) -> int:
        return self.end.fileno()

    def send(self, message: Message) -> None:
        """Waits until the other side has room."""
        data = encode(message)
        with self._lock:
            self.end.sendall(data)

    def waiting(self) -> Message | None:
        """One that has come already; nothing is read for it."""
        return self._inbox.take()

    def receive(self) -> Message | None:
        """The next one; None when the other side is gone."""
        while (found := self._inbox.take()) is None:
            if not self.read():
                return None
        return found

    def read(self) -> bool:
        """Take in what is there, waiting for the first byte; False when the other is gone."""
        try:
            data = self.end.recv(_CHUNK)
        except ConnectionError:
            return False
        self._inbox.feed(data)
        return bool(data)


def text(message: Message, name: str) -> str:
    """A member that is to be text; what is missing or else is empty."""
    value = message.get(name)
    return value if isinstance(value, str) else ""


def number(message: Message, name: str) -> float:
    """The same for numbers; 0 for what is none."""
    value = message.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0
