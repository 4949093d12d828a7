"""The service as a runner sees it: a real HTTP server that can be down, or fence a lease."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ..ports import free_port

WAIT_SECONDS = 90.0


class FakeService:
    """Records claims and events; ``status`` is what it answers.

    Attributes:
        tokens: accepted tokens; None accepts any.
        started: bodies of the claims, with the lease id in front.
        events: those accepted, each once, by number.
        joined: bodies of the members of a gang that have joined, by id; ``members`` of them are
            all.
        secrets: the answer to an attempt that asks for the values of its secrets.
    """

    def __init__(self, ip: str = "127.0.0.1") -> None:
        self.status = 200
        self.tokens: set[str] | None = None
        self.started: list[tuple[str, dict[str, Any]]] = []
        self.events: dict[int, dict[str, Any]] = {}
        self.joined: dict[str, dict[str, Any]] = {}
        self.members = 0
        self.secrets: dict[str, Any] = {}
        self.asked = 0
        self._changed = threading.Condition()
        self._server: ThreadingHTTPServer | None = None
        self._ip = ip
        self._port = free_port()

    # -- control --------------------------------------------------------------------------

    @property
    def port(self) -> int:
        return self._port

    @property
    def url(self) -> str:
        return f"http://{self._ip}:{self._port}/services/carrel"

    def up(self) -> FakeService:
        """Listen, on the same port as before."""

        class Handler(BaseHTTPRequestHandler):
            def do_POST(handler: BaseHTTPRequestHandler) -> None:
                self._answer(handler)

            def do_GET(handler: BaseHTTPRequestHandler) -> None:
                said = json.dumps(self.secrets).encode()
                handler.send_response(self.status)
                handler.send_header("Content-Length", str(len(said)))
                handler.end_headers()
                handler.wfile.write(said)

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer((self._ip, self._port), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def down(self) -> None:
        """Refuse connections."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def wait_for(self, what: Callable[[FakeService], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: what(self), WAIT_SECONDS), self.kinds()

    def wait_for_event(self, kind: str, **data: object) -> None:
        self.wait_for(
            lambda service: any(
                event["kind"] == kind and data.items() <= event["data"].items()
                for event in service.events.values()
            )
        )

    def kinds(self) -> list[str]:
        return [self.events[number]["kind"] for number in sorted(self.events)]

    @property
    def ended(self) -> dict[str, Any]:
        (event,) = [event for event in self.events.values() if event["kind"] == "ended"]
        found: dict[str, Any] = event["data"]
        return found

    # -- answers --------------------------------------------------------------------------

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        *_, lease, what = handler.path.split("/")
        with self._changed:
            self.asked += 1
            token = handler.headers["Authorization"].removeprefix("token ")
            status = self.status
            if status == 200 and self.tokens is not None and token not in self.tokens:
                status = 403
            if status == 200 and what == "started":
                self.started.append((lease, body))
            elif status == 200 and what == "join":
                self.joined[lease] = body
            elif status == 200:
                for event in body["events"]:
                    self.events.setdefault(event["seq"], event)
            self._changed.notify_all()
        said = json.dumps(self._answer_to_member() if what == "join" else {}).encode()
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(said)))
        handler.end_headers()
        handler.wfile.write(said)

    def _answer_to_member(self) -> dict[str, Any]:
        bodies = [self.joined[member] for member in sorted(self.joined)]
        if len(bodies) < self.members:
            return {"ready": False}
        addresses = [body["address"] for body in bodies]
        return {"ready": True, "addresses": addresses, "port": bodies[0]["port"]}
