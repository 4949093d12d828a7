"""Standard input and output of a container, as one line of bytes."""

from __future__ import annotations

import contextlib
import socket
from typing import Final, cast

import docker

_HEAD: Final = 8
_STDOUT: Final = 1
_CHUNK: Final = 1 << 18
_SEND_SECONDS: Final = 30.0


class AttachedLine:
    """To be attached before the container starts, so that nothing is missed."""

    def __init__(self, client: docker.APIClient, container: str) -> None:
        wanted = {"stdin": 1, "stdout": 1, "stream": 1}
        # Kept as well: the connection closes with it.
        self._held = client.attach_socket(container, params=wanted)
        self._socket = cast("socket.socket", getattr(self._held, "_sock", self._held))
        self._pieces = bytearray()

    def send(self, data: bytes) -> None:
        self._socket.settimeout(_SEND_SECONDS)
        self._socket.sendall(data)

    def receive(self, seconds: float) -> bytes:
        """The engine puts a head before each piece: which stream, and how long."""
        self._socket.settimeout(max(seconds, 0.001))
        while True:
            if len(self._pieces) >= _HEAD:
                length = int.from_bytes(self._pieces[4:_HEAD], "big")
                if len(self._pieces) >= _HEAD + length:
                    stream = self._pieces[0]
                    data = bytes(self._pieces[_HEAD : _HEAD + length])
                    del self._pieces[: _HEAD + length]
                    if stream == _STDOUT and data:
                        return data
                    continue
            more = self._socket.recv(_CHUNK)
            if not more:
                return b""
            self._pieces += more

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._held.close()
