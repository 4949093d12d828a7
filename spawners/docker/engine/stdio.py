"""Standard input and output of a container, as one line of bytes."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping
from typing import Final, cast

import docker
import requests.exceptions
from docker.errors import APIError, DockerException

from ....hub.errors import CarrelError, Unavailable
from ....hub.interfaces.backend_settings import DockerHost
from ....hub.records.json_value import Json
from .client import START_SECONDS, DockerClient, connect, in_words

_HEAD: Final = 8
_STDOUT: Final = 1
_CHUNK: Final = 1 << 18
_SEND_SECONDS: Final = 30.0


class ContainerStdio:
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


_LINE: Final = ("AttachStdin", "AttachStdout", "OpenStdin", "StdinOnce")


def container_body(body: Mapping[str, Json], label: str, installation: str) -> dict[str, Json]:
    """A body of the template for one that has no lease, so that it is none of the reconciler's."""
    host = body["HostConfig"]
    assert isinstance(host, Mapping)
    return {
        **body,
        "Labels": {label: installation},
        "HostConfig": {
            **host,
            # It goes with its line, also where nobody is left to remove it.
            "AutoRemove": True,
            "LogConfig": {"Type": "none"},
        },
        **dict.fromkeys(_LINE, True),
        "AttachStderr": False,
        "Tty": False,
    }


def start(
    engine: DockerClient, host: DockerHost, name: str, body: Mapping[str, Json]
) -> tuple[str, ContainerStdio]:
    """Its id, and the line to it from its first byte on.

    Raises:
        BackendFailed, Unavailable: there is none then.
    """
    made = engine.create(name, body)
    try:
        line = _attached(host, made)
        engine.start(made)
    except CarrelError:
        engine.remove(made)
        raise
    return made, line


def _attached(host: DockerHost, made: str) -> ContainerStdio:
    try:
        return ContainerStdio(connect(host, START_SECONDS), made)
    except APIError as error:
        raise in_words(error, host.node) from error
    except (DockerException, requests.exceptions.RequestException, OSError) as error:
        raise Unavailable(f"The Docker engine on {host.node} does not answer.") from error
