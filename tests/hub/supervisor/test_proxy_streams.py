"""A stream through the proxy ends when the server behind it is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from carrel.hub.supervisor import proxy

from ...e2e.support import eventually
from ...ports import free_port
from ...requirements import need

SERVER = """
import http.server, sys, time
class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"5\\r\\nfirst\\r\\n")
        time.sleep(600)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""


@pytest.fixture
def processes() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def started(stack: ExitStack, *command: str) -> subprocess.Popen[bytes]:
    process = stack.enter_context(subprocess.Popen(command, start_new_session=True))
    stack.callback(os.killpg, process.pid, signal.SIGKILL)
    return process


def test_a_stream_ends_with_its_server(processes: ExitStack) -> None:
    command = proxy.find()
    need("proxy", command, "the proxy is not installed (make test installs it)")
    assert command is not None
    port, api, behind = free_port(), free_port(), free_port()
    server = started(processes, sys.executable, "-c", SERVER, str(behind))
    where = ("--ip", "127.0.0.1", "--port", str(port), "--api-port", str(api))
    started(processes, *command, *where, "--default-target", f"http://127.0.0.1:{behind}")

    def listening() -> httpx.Response | None:
        try:
            answer = client.send(request, stream=True)
        except httpx.TransportError:
            return None
        return answer if answer.is_success else None

    with httpx.Client(trust_env=False, timeout=30) as client:
        request = client.build_request("GET", f"http://127.0.0.1:{port}/")
        heard = eventually(listening, "the proxy and the server answer").iter_raw()
        assert next(heard) == b"first"
        server.kill()
        with pytest.raises(httpx.RemoteProtocolError):
            next(heard)
