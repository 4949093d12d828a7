"""A Jupyter server with a real kernel journals what its cells put out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from jupyter_server.services.kernels.connection.base import (
    deserialize_msg_from_ws_v1,
    serialize_msg_to_ws_v1,
)
from websocket import WebSocket, create_connection

from carrel.extensions.environment import (
    JOURNAL_PATH,
    KEEP_SESSION_PATH,
    PANEL_PATH,
    jupyter_environment,
)

from ... import plain_http
from ...e2e.support import eventually
from ...fake_service import PREFIX, FakeService
from ...ports import free_port

PROTOCOL_1 = "v1.kernel.websocket.jupyter.org"


@dataclass
class Server:
    url: str
    home: Path
    kernel: str = ""

    def call(self, method: str, path: str, **more: Any) -> httpx.Response:
        return plain_http.request(method, f"{self.url}/{path}", timeout=60, **more)

    def start_kernel(self) -> str:
        answer = self.call("POST", "api/kernels", json={})
        assert answer.status_code == httpx.codes.CREATED, answer.text
        return str(answer.json()["id"])

    def journal(self, after: int = -1, notebook: str = "") -> dict[str, Any]:
        query = {"after": after, "notebook": notebook}
        answer = self.call("GET", f"{JOURNAL_PATH}/{self.kernel}", params=query)
        assert answer.status_code == httpx.codes.OK, answer.text
        return dict(answer.json())

    def texts(self) -> dict[str, str]:
        """What each cell has printed."""
        return {
            execution["cell"]: "".join(
                entry["content"]["text"]
                for entry in execution["entries"]
                if entry["type"] == "stream"
            )
            for execution in self.journal()["executions"]
        }

    def page(self, protocol: str = PROTOCOL_1) -> Page:
        client = uuid.uuid4().hex
        address = f"{self.url}/api/kernels/{self.kernel}/channels?session_id={client}"
        socket = create_connection(
            address.replace("http", "ws", 1),
            subprotocols=[protocol] if protocol else None,
            timeout=60,
        )
        return Page(socket, client, protocol)


@dataclass
class Page:
    """A client on the kernel's connection."""

    socket: WebSocket
    client: str
    protocol: str

    def asks(self, code: str, **metadata: Any) -> str:
        name = uuid.uuid4().hex
        header = {
            "msg_id": name,
            "msg_type": "execute_request",
            "session": self.client,
            "username": "",
            "date": "2026-11-01T00:00:00Z",
            "version": "5.3",
        }
        content = {"code": code, "silent": False, "stop_on_error": True}
        parts: list[dict[str, Any]] = [header, {}, metadata, content]
        if self.protocol:
            packed = [json.dumps(part).encode() for part in parts]
            self.socket.send_binary(serialize_msg_to_ws_v1(packed, "shell"))
        else:
            names = ("header", "parent_header", "metadata", "content")
            self.socket.send(
                json.dumps({"channel": "shell", **dict(zip(names, parts, strict=True))})
            )
        return name

    def hears_the_end_of(self, name: str) -> str:
        """Return what was printed meanwhile."""
        said = ""
        while True:
            header, parent, content = self._next()
            if parent.get("msg_id") != name:
                continue
            if header["msg_type"] == "stream":
                said += content["text"]
            if content.get("execution_state") == "idle":
                return said

    def _next(self) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        message = self.socket.recv()
        if self.protocol:
            _, (header, parent, _, content, *_) = deserialize_msg_from_ws_v1(message)
            return json.loads(header), json.loads(parent), json.loads(content)
        told = json.loads(message)
        return told["header"], told["parent_header"], told["content"]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("home")
    port = free_port()
    with FakeService() as service:
        for call in (("POST", f"{PREFIX}/requests/s-1/keep"), ("GET", f"{PREFIX}/courses")):
            service.extra[call] = no_longer_signed_in
        yield from served(home, port, service)


def no_longer_signed_in(call: Any) -> None:
    refusal = {"error": {"code": "not_signed_in", "message": "This token has ended."}}
    call.say(401, refusal)


def served(home: Path, port: int, service: FakeService) -> Iterator[Server]:
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("JUPYTER")},
        "HOME": str(home),
        "CARREL_REQUEST": "s-1",
        "CARREL_LEASE": "l-1",
        "CARREL_URL": service.url,
        "CARREL_TOKEN": "none",
        **jupyter_environment({}),
    }
    command = [sys.executable, "-m", "jupyter_server", f"--port={port}", "--allow-root"]
    command += ["--IdentityProvider.token=", "--ServerApp.disable_check_xsrf=True"]
    command += ["--ServerApp.jpserver_extensions={'carrel.extensions.lab': True}"]
    with (home / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=home, env=environment, stdout=log, stderr=log)
    server = Server(f"http://127.0.0.1:{port}", home)

    def answers() -> bool:
        try:
            return server.call("GET", "api").status_code == httpx.codes.OK
        except httpx.HTTPError:
            assert process.poll() is None, (home / "log").read_text()
            return False

    try:
        eventually(answers, "the server answers")
        yield server
    finally:
        process.terminate()
        process.wait(timeout=60)


@pytest.fixture
def server(running: Server) -> Iterator[Server]:
    running.kernel = running.start_kernel()
    yield running
    running.call("DELETE", f"api/kernels/{running.kernel}")


@pytest.mark.parametrize("protocol", [PROTOCOL_1, ""])
def test_what_a_cell_prints_while_no_page_is_open_is_kept_by_cell(
    server: Server, protocol: str, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    page = server.page(protocol)
    wait = f"import time, pathlib\nwhile not pathlib.Path({str(gate)!r}).exists(): time.sleep(0.02)"
    page.asks(f"{wait}\nprint('one\\u2028two')", cellId="c1", deletedCells=[])
    page.asks("print('three')", cellId="c2", deletedCells=[])
    eventually(lambda: len(server.journal()["executions"]) == 2, "both are asked for")
    assert {it["live"] for it in server.journal()["executions"]} == {True}
    page.socket.close()
    gate.touch()
    eventually(lambda: server.texts().get("c2"), "both have run")
    assert server.texts() == {"c1": "one\u2028two\n", "c2": "three\n"}
    first = server.journal()["executions"][0]
    assert (first["client"], first["live"], first["in_notebook"]) == (page.client, False, True)
    assert server.journal(after=server.journal()["seq"])["executions"] == []


def test_clients_that_name_no_cell_work_as_ever_and_are_not_journaled(server: Server) -> None:
    for protocol in (PROTOCOL_1, ""):
        page = server.page(protocol)
        assert page.hears_the_end_of(page.asks("print('console')")) == "console\n"
        page.socket.close()
    assert server.journal()["requests"] == []


def test_a_page_gets_its_output_once_and_the_saved_executions_are_forgotten(
    server: Server,
) -> None:
    page = server.page()
    name = page.asks("print('once')", cellId="c1", deletedCells=[])
    assert page.hears_the_end_of(name) == "once\n"
    eventually(lambda: server.journal()["executions"][0]["state"] == "ended", "it has ended")
    path = f"{JOURNAL_PATH}/{server.kernel}/saved"
    assert server.call("POST", path, json={"requests": [name]}).status_code == 204
    assert server.call("POST", path, json={"requests": [name]}).status_code == 204
    assert server.journal()["requests"] == []
    page.socket.close()


def test_a_restart_clears_the_journal(server: Server) -> None:
    page = server.page()
    page.hears_the_end_of(page.asks("print('old')", cellId="c1", deletedCells=[]))
    page.socket.close()
    eventually(lambda: server.texts().get("c1"), "it is journaled")
    assert server.call("POST", f"api/kernels/{server.kernel}/restart").status_code == 200
    assert server.journal()["requests"] == []


def test_a_crash_of_the_kernel_ends_its_executions_and_keeps_their_output(server: Server) -> None:
    page = server.page()
    page.asks("print('last words', flush=True)", cellId="c1", deletedCells=[])
    page.asks("import os; os._exit(1)", cellId="c2", deletedCells=[])
    page.asks("print('never')", cellId="c3", deletedCells=[])

    def states() -> set[str]:
        return {execution["state"] for execution in server.journal()["executions"]}

    eventually(lambda: states() == {"ended"}, "the server restarts the kernel")
    page.socket.close()
    assert server.texts() == {"c1": "last words\n", "c2": "", "c3": ""}


def test_the_next_kernel_of_a_notebook_has_what_the_last_one_left(server: Server) -> None:
    assert server.journal(notebook="work.ipynb")["requests"] == []
    page = server.page()
    page.asks("print('kept')", cellId="c1", deletedCells=[])
    eventually(lambda: server.texts().get("c1"), "it is journaled")
    page.socket.close()
    server.call("DELETE", f"api/kernels/{server.kernel}")
    server.kernel = server.start_kernel()
    assert server.journal(notebook="other.ipynb")["requests"] == []
    server.journal(notebook="work.ipynb")
    assert server.texts() == {"c1": "kept\n"}


@pytest.fixture(scope="module")
def idle(running: Server) -> Server:
    """With one kernel for all tests that run nothing."""
    return replace(running, kernel=running.start_kernel())


@pytest.mark.parametrize(
    ("call", "body", "status", "said"),
    [
        ("GET {kernel}?after=soon", None, 400, "accepted is the number of an earlier answer"),
        ("GET no-kernel", None, 404, "no kernel no-kernel runs on this server"),
        ("GET ..%2f..%2fetc", None, 404, "no kernel"),
        ("POST no-kernel/saved", {"requests": []}, 404, "no kernel"),
        ("POST {kernel}/saved", {"requests": "all"}, 400, "accepted is"),
        ("POST {kernel}/saved", ["a"], 400, "accepted is"),
    ],
)
def test_bad_input_is_refused_with_what_is_accepted(
    idle: Server, call: str, body: Any, status: int, said: str
) -> None:
    method, path = call.format(kernel=idle.kernel).split()
    answer = idle.call(method, f"{JOURNAL_PATH}/{path}", json=body)
    assert answer.status_code == status
    assert said in answer.json()["message"]


@pytest.mark.parametrize(
    ("method", "path"), [("POST", KEEP_SESSION_PATH), ("GET", f"{PANEL_PATH}/courses")]
)
def test_a_refused_token_is_not_taken_for_the_end_of_the_sign_in_to_jupyterlab(
    running: Server, method: str, path: str
) -> None:
    answer = running.call(method, path)
    assert answer.status_code == httpx.codes.FORBIDDEN
    assert answer.json()["message"].startswith("This token has ended.")
