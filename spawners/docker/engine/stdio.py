"""Communicate with a container over its standard input and output."""

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
from .client import START_SECONDS, DockerClient, connect, translate_error

_HEADER: Final = 8
_STDOUT: Final = 1
_CHUNK: Final = 1 << 18
_SEND_SECONDS: Final = 30.0


class ContainerStdio:
    """The standard streams of a container; attach before it starts, so that no output is lost."""

    def __init__(self, client: docker.APIClient, container: str) -> None:
        streams = {"stdin": 1, "stdout": 1, "stream": 1}
        # The response is kept, because the connection closes with it.
        self._response = client.attach_socket(container, params=streams)
        self._socket = cast("socket.socket", getattr(self._response, "_sock", self._response))
        self._buffer = bytearray()

    def send(self, data: bytes) -> None:
        self._socket.settimeout(_SEND_SECONDS)
        self._socket.sendall(data)

    def receive(self, seconds: float) -> bytes:
        """Return the next piece of standard output; empty at the end.

        The engine puts a header before each piece: the stream and the length.
        """
        self._socket.settimeout(max(seconds, 0.001))
        while True:
            if len(self._buffer) >= _HEADER:
                length = int.from_bytes(self._buffer[4:_HEADER], "big")
                if len(self._buffer) >= _HEADER + length:
                    stream = self._buffer[0]
                    data = bytes(self._buffer[_HEADER : _HEADER + length])
                    del self._buffer[: _HEADER + length]
                    if stream == _STDOUT and data:
                        return data
                    continue
            more = self._socket.recv(_CHUNK)
            if not more:
                return b""
            self._buffer += more

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._response.close()


_ATTACHED: Final = ("AttachStdin", "AttachStdout", "OpenStdin", "StdinOnce")


def container_body(body: Mapping[str, Json], label: str, installation: str) -> dict[str, Json]:
    """Adapt the template's body for a container without a lease; the reconciler ignores it."""
    host = body["HostConfig"]
    assert isinstance(host, Mapping)
    return {
        **body,
        "Labels": {label: installation},
        "HostConfig": {
            **host,
            # The container is removed when its connection closes, even if the service has died.
            "AutoRemove": True,
            "LogConfig": {"Type": "none"},
        },
        **dict.fromkeys(_ATTACHED, True),
        "AttachStderr": False,
        "Tty": False,
    }


def start(
    engine: DockerClient, host: DockerHost, name: str, body: Mapping[str, Json]
) -> tuple[str, ContainerStdio]:
    """Create and start a container; return its id and its standard streams.

    Raises:
        BackendFailed: the engine refused; no container is left.
        Unavailable: the engine does not answer; no container is left.
    """
    container = engine.create(name, body)
    try:
        stdio = _attach(host, container)
        engine.start(container)
    except CarrelError:
        engine.remove(container)
        raise
    return container, stdio


def _attach(host: DockerHost, container: str) -> ContainerStdio:
    try:
        return ContainerStdio(connect(host, START_SECONDS), container)
    except APIError as error:
        raise translate_error(error, host.node) from error
    except (DockerException, requests.exceptions.RequestException, OSError) as error:
        raise Unavailable(f"The Docker engine on {host.node} does not answer.") from error
