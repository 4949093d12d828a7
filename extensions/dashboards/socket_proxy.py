"""Pass calls to a user's server on to a program that listens on a Unix socket."""

from __future__ import annotations

import contextlib
import socket
from http import HTTPStatus
from pathlib import Path
from typing import Any

from jupyter_server.base.handlers import JupyterHandler
from tornado.httpclient import HTTPRequest
from tornado.iostream import IOStream
from tornado.netutil import Resolver
from tornado.simple_httpclient import SimpleAsyncHTTPClient
from tornado.tcpclient import TCPClient

CALL_SECONDS = 120.0
_LARGEST_ANSWER = 256 << 20
_FROM_BROWSER = ("Accept", "Content-Type", "If-None-Match", "X-XSRF-Protected")
_TO_BROWSER = (
    "Content-Type", "Content-Encoding", "Content-Disposition", "Content-Security-Policy",
    "Cache-Control", "ETag", "Expires", "Location", "Retry-After", "X-Content-Type-Options",
)  # fmt: skip  # a list


class _SocketResolver(Resolver):
    """Connects to a Unix socket, whatever the host."""

    def initialize(self, path: Path) -> None:
        self._path = str(path)

    async def resolve(
        self, _host: str, _port: int, _family: int = socket.AF_UNSPEC
    ) -> list[tuple[int, str]]:
        return [(socket.AF_UNIX, self._path)]


class _ClosingClient(TCPClient):
    """Closes its connection also while an answer is awaited, so that the program gives up."""

    def __init__(self, path: Path) -> None:
        super().__init__(resolver=_SocketResolver(path=path))
        self._stream: IOStream | None = None

    async def connect(self, *args: Any, **options: Any) -> IOStream:
        self._stream = await super().connect(*args, **options)
        return self._stream

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
        super().close()


async def pass_on(handler: JupyterHandler, path: Path, uri: str) -> None:
    """Answer a call with what the program on the socket answers; cancelled, close the connection.

    Args:
        path: of the socket.
        uri: that the program is asked for, with the query.
    """
    client = SimpleAsyncHTTPClient(force_instance=True, max_body_size=_LARGEST_ANSWER)
    client.tcp_client.close()
    client.tcp_client = _ClosingClient(path)
    given = handler.request.headers
    request = HTTPRequest(
        f"http://localhost{uri}",
        method=handler.request.method or "GET",
        headers={name: given[name] for name in _FROM_BROWSER if name in given},
        body=handler.request.body or None,
        allow_nonstandard_methods=True,
        decompress_response=False,
        follow_redirects=False,
        request_timeout=CALL_SECONDS,
    )
    with contextlib.closing(client):
        answer = await client.fetch(request, raise_error=False)
    handler.set_status(answer.code)
    for name in _TO_BROWSER:
        if name in answer.headers:
            handler.set_header(name, answer.headers[name])
    if answer.code not in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
        handler.write(answer.body)
    await handler.finish()
