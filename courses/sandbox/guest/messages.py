"""Encode and decode the messages of a sandbox: JSON objects of bounded length."""

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
    """The bytes are not a valid message."""


def encode(message: Message) -> bytes:
    """A message as bytes. Raises Garbled where a value is not plain data."""
    try:
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise Garbled(f"not plain data: {error}") from error
    # Python accepts half a surrogate pair in text; UTF-8 does not.
    body = text.encode("utf-8", "replace")
    return len(body).to_bytes(_HEAD, "big") + body


class TooLong(Garbled):
    """The message is longer than allowed."""


class MessageBuffer:
    """Assembles messages from pieces."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._pieces = bytearray()
        self._whole: deque[Message] = deque()

    def feed(self, data: bytes) -> None:
        self._pieces += data
        while len(self._pieces) >= _HEAD:
            length = int.from_bytes(self._pieces[:_HEAD], "big")
            if length > self._most:
                raise TooLong(f"a message of {length} bytes; the maximum is {self._most}")
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
        raise Garbled(f"not a message: {error}") from error
    if not isinstance(found, dict):
        raise Garbled("not a message: an object is expected")
    return cast("Message", found)


class Endpoint(Protocol):
    """One end of a connection, such as a socket."""

    def fileno(self) -> int: ...

    def recv(self, most: int, /) -> bytes: ...

    def sendall(self, data: bytes, /) -> None: ...

    def close(self) -> None: ...


class MessageChannel:
    """Sends and receives messages over a connection."""

    def __init__(self, end: Endpoint, most_bytes: int) -> None:
        self.end = end
        self.most_bytes = most_bytes
        self._inbox = MessageBuffer(most_bytes)
        self._lock = threading.Lock()

    def fileno(self) -> int:
        return self.end.fileno()

    def send(self, message: Message) -> None:
        """Send a message; blocks while the buffers are full."""
        data = encode(message)
        with self._lock:
            self.end.sendall(data)

    def waiting(self) -> Message | None:
        """A message that was received already; reads nothing."""
        return self._inbox.take()

    def receive(self) -> Message | None:
        """The next message; None when the connection is closed."""
        while (found := self._inbox.take()) is None:
            if not self.read():
                return None
        return found

    def read(self) -> bool:
        """Read what is available, at least one byte; False when the connection is closed."""
        try:
            data = self.end.recv(_CHUNK)
        except ConnectionError:
            return False
        self._inbox.feed(data)
        return bool(data)


def text(message: Message, name: str) -> str:
    """A text member; empty where it is missing or of another type."""
    value = message.get(name)
    return value if isinstance(value, str) else ""


def number(message: Message, name: str) -> float:
    """A number; 0 where it is missing or of another type."""
    value = message.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0
