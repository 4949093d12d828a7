"""A kernel in a user's session, used through the proxy as a browser does."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass

import httpx
from websocket import WebSocket, create_connection

from .. import plain_http
from ..e2e.support import Installation
from .support import server_token


@dataclass(frozen=True, slots=True)
class Kernel:
    site: Installation
    user: str
    id: str

    @classmethod
    def start(cls, site: Installation, user: str) -> Kernel:
        answer = plain_http.post(
            f"{site.url}/user/{user}/api/kernels",
            headers=server_token(site, user),
            json={},
            timeout=90,
        )
        assert answer.status_code == httpx.codes.CREATED, answer.text
        return cls(site, user, answer.json()["id"])

    def run(self, code: str) -> str:
        """Execute it, and return what it printed."""
        address = f"{self.site.url}/user/{self.user}/api/kernels/{self.id}/channels"
        socket = create_connection(
            address.replace("http", "ws", 1), header=server_token(self.site, self.user), timeout=120
        )
        try:
            return _execute(socket, code)
        finally:
            socket.close()


def _execute(socket: WebSocket, code: str) -> str:
    name = uuid.uuid4().hex
    header = {"msg_id": name, "msg_type": "execute_request", "session": name, "version": "5.3"}
    socket.send(
        json.dumps(
            {
                "channel": "shell",
                "header": header,
                "parent_header": {},
                "metadata": {},
                "content": {"code": code, "silent": False},
            }
        )
    )
    printed = ""
    while True:
        message = json.loads(socket.recv())
        if message["parent_header"].get("msg_id") != name:
            continue
        content = message["content"]
        match message["header"]["msg_type"]:
            case "stream":
                printed += content["text"]
            case "error":
                raise AssertionError(f"{content['ename']}: {content['evalue']}")
            case "status" if content["execution_state"] == "idle":
                return printed
