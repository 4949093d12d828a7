"""A small real HTTP server that speaks the service's API with a state that tests script."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

import httpx

from .ports import free_port

PREFIX = "/services/carrel/api/v1"
HUB_TOKEN = "the-hubs-token"


class FakeService:
    """Requests are dicts in the form of the wire; ``change`` wakes every open stream.

    Attributes:
        refuse: (status, body) for PUT /sessions and POST /requests, until it is set to None.
        calls: every call as (method, path below the prefix, body).
        shown: (id, state) of every event that a stream has sent.
        beats: heartbeats of streams that had no event to send, by stream.
        files: files of a job, by name.
        notes: what is said of the notebook of a new job.
        page: the maximum number of requests in a page of the list.
        problems: whether errors have the form of RFC 9457 alone, without the older one.
        too_many: how many calls are refused with 429 from now on.
        free: how many devices PUT /sessions may grant at once.
        conflicts: calls that are answered with 409 the next time: "launch", "started", or
            "cancel" for the launch of a request that its owner has cancelled.
        hub_port: port of a hub that gets everything below /hub, as the proxy does it.
        on_stop: called with a request that has become ``stopping``; ends it by default.
    """

    def __init__(self, port: int = 0) -> None:
        self.requests: dict[str, dict[str, Any]] = {}
        self.events: dict[str, list[dict[str, Any]]] = {}
        self.logs: dict[str, bytes] = {}
        self.outputs: dict[str, bytes] = {}
        self.files: dict[str, dict[str, bytes]] = {}
        self.notes: list[str] = []
        self.page = 200
        self.problems = False
        self.calls: list[tuple[str, str, Any]] = []
        self.shown: list[tuple[str, str]] = []
        self.beats: Counter[str] = Counter()
        self.headers: list[dict[str, str]] = []
        self.refuse: tuple[int, dict[str, Any]] | None = None
        self.fail_next: list[int] = []
        self.too_many = 0
        self.drop_next: list[str] = []
        self.free = 1
        self.conflicts: list[str] = []
        self.hub_port: int | None = None
        self.news = threading.Condition()
        self.on_stop: Callable[[dict[str, Any]], None] = self.end
        self.extra: dict[tuple[str, str], Callable[[_Handler], None]] = {}
        self.port = port or free_port()
        self.open()

    # -- life -----------------------------------------------------------------------------

    def open(self) -> None:
        """Listen (again, on the same port)."""
        self.closing = False
        handler = type("Handler", (_Handler,), {"fake": self})
        self.server = _Server(("127.0.0.1", self.port), handler)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def close(self) -> None:
        """Stop listening and cut every open connection."""
        with self.news:
            self.closing = True
            self.news.notify_all()
        self.server.shutdown()
        self.server.cut()
        self.server.server_close()
        self.thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def site(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/services/carrel"

    # -- script ---------------------------------------------------------------------------

    def add(self, id_: str, **fields: Any) -> dict[str, Any]:
        request = {
            "id": id_, "kind": "job", "owner": "anna", "group": "cs101", "devices": 1,
            "seconds": 3600, "state": "queued", "submitted_at": 1000.0, "ended": False,
        } | fields  # fmt: skip  # grouped by meaning
        with self.news:
            self.requests[id_] = request
            self.news.notify_all()
        return request

    def change(self, id_: str, **fields: Any) -> None:
        with self.news:
            self.requests[id_] = self.requests[id_] | fields
            self.news.notify_all()

    def add_event(self, id_: str, kind: str, **data: Any) -> None:
        with self.news:
            events = self.events.setdefault(id_, [])
            events.append({
                "id": len(events) + 1, "request_id": id_, "epoch": 1, "at": 1000.0,
                "kind": kind, "data": data,
            })  # fmt: skip  # grouped by meaning
            self.news.notify_all()

    def end(self, request: dict[str, Any], state: str = "cancelled") -> None:
        self.change(request["id"], state=state, ended=True)

    def grant(self, id_: str) -> None:
        epoch = 1 + (self.requests[id_].get("lease") or {"epoch": 0})["epoch"]
        self.change(id_, state="granted", wait=None, lease={
            "id": f"{id_}.{epoch}", "epoch": epoch, "state": "live", "granted_at": 1000.0,
            "devices": [{
                "id": "SIM-1", "node": "here", "index": 0, "model": "Simulated GPU",
                "memory_bytes": 2**30, "simulated": True, "state": "taken",
            }],
        })  # fmt: skip  # grouped by meaning

    def wait_for(self, found: Callable[[], object], seconds: float = 60.0) -> None:
        """Block until a condition holds; every call and change evaluates it again."""
        with self.news:
            assert self.news.wait_for(lambda: bool(found()), seconds), "it did not happen"

    def called(self, method: str, path: str) -> list[Any]:
        """Bodies of the calls so far."""
        return [body for m, p, body in self.calls if (m, p) == (method, path)]

    # -- sessions -------------------------------------------------------------------------

    def put_session(self, body: dict[str, Any]) -> dict[str, Any]:
        with self.news:
            live = [
                r for r in self.requests.values()
                if r["owner"] == body["owner"] and r.get("server_name") == body["server_name"]
                and not r["ended"]
            ]  # fmt: skip  # grouped by meaning
            if live:
                return live[0]
            # Processes are found by their lease: one name must not serve two fakes at a time.
            id_ = f"s-{uuid.uuid4().hex[:8]}"
            wait = {
                "place": 1,
                "ahead": 0,
                "reason": "no_free_device",
                "sentence": "Queued at position 1.",
            }
            self.add(id_, kind="session", owner=body["owner"], wait=wait,
                     server_name=body["server_name"])  # fmt: skip  # grouped by meaning
            if self.free > 0:
                self.free -= 1
                self.grant(id_)
            return self.requests[id_]

    def stop(self, id_: str, body: dict[str, Any]) -> dict[str, Any]:
        request = self.requests[id_]
        if not request["ended"] and request["state"] != "stopping":
            cause = {"code": body["cause"], "message": body.get("message") or "It was stopped.",
                     "details": body.get("details", "")}  # fmt: skip  # grouped by meaning
            self.change(id_, state="stopping", cause=cause)
            self.on_stop(self.requests[id_])
        return self.requests[id_]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, *args: Any) -> None:
        self.connections: set[Any] = set()
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore cut connections, which some tests cause."""

    def cut(self) -> None:
        for connection in list(self.connections):
            self.shutdown_request(connection)


class _Handler(BaseHTTPRequestHandler):
    fake: FakeService
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def handle_any(self) -> None:
        fake = self.fake
        self.raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        self.query = parse_qs(url.query)
        if special := fake.extra.get((self.command, url.path)):
            return special(self)
        if fake.hub_port and url.path.startswith("/hub"):
            return self.pass_on(fake.hub_port)
        if not url.path.startswith(PREFIX):
            return self.answer(404, b"no such page", "text/html")
        path = url.path.removeprefix(PREFIX).lstrip("/")
        body = json.loads(self.raw) if self.raw else None
        with fake.news:
            fake.calls.append((self.command, path, body))
            fake.headers.append(dict(self.headers))
            fake.news.notify_all()
        if fake.drop_next and fake.drop_next[0] == self.command:
            fake.drop_next.pop(0)
            self.route(path, body, silent=True)
            self.close_connection = True
            return None
        if fake.too_many:
            fake.too_many -= 1
            refusal = {"error": {"code": "too_many_calls", "message": "Too many.", "accepted": ""}}
            return self.answer(
                429, json.dumps(refusal).encode(), "application/json", {"Retry-After": "7"}
            )
        if fake.fail_next:
            return self.answer(fake.fail_next.pop(0), b"<html>away</html>", "text/html")
        return self.route(path, body)

    do_GET = do_POST = do_PUT = do_DELETE = handle_any

    def route(self, path: str, body: Any, *, silent: bool = False) -> None:  # noqa: PLR0912, PLR0915
        fake, say = self.fake, self.say
        if silent:
            say = lambda *_: None  # noqa: E731
        match self.command, path.split("/"):
            case ("PUT", ["sessions"]) | ("POST", ["requests"]) if fake.refuse:
                self.refuse(*fake.refuse, say=say)
            case "PUT", ["sessions"]:
                say(200, fake.put_session(body))
            case "POST", ["requests"]:
                known = [r for r in fake.requests.values() if r["key"] == body["idempotency_key"]]
                if not known:
                    fake.add(
                        f"j-{len(fake.requests):08d}",
                        key=body["idempotency_key"],
                        notes=fake.notes,
                        notebook=(body.get("notebook") or {"name": ""})["name"],
                        **{
                            name: body[name]
                            for name in ("labels", "command", "workdir", "memory_bytes")
                            if name in body
                        },
                    )
                say(201, known[0] if known else list(fake.requests.values())[-1])
            case "GET", ["me"]:
                say(200, {"name": "anna", "admin": False, "groups": ["cs101"], "teaches": []})
            case "GET", ["requests"]:
                say(200, self.listed())
            case "GET", ["queue"]:
                waiting = [r for r in fake.requests.values() if r["state"] == "queued"]
                say(200, {"total": len(waiting), "queue": [
                    {"place": place, "kind": r["kind"], "devices": r["devices"],
                     "sentence": f"Queued at position {place}. Full.", "why": "Full.",
                     "yours": r["owner"] == "anna",
                     "request_id": r["id"], "owner": r["owner"], "title": r.get("notebook", "")}
                    for place, r in enumerate(waiting, 1)
                ]})  # fmt: skip  # grouped by meaning
            case "GET", ["groups"]:
                limits = {"max_devices": 4, "max_devices_per_user": 2, "max_seconds": 3600}
                say(200, {"groups": [{"name": "cs101", "teachers": ["tom"], **limits}]})
            case "GET", ["usage"]:
                say(200, {"device_seconds": 0.0, "by_group": [], "ledger": []})
            case _, ["requests", id_, *_] if id_ not in fake.requests:
                say(404, {"error": {"code": "not_found", "message": f"There is no request {id_}.",
                                    "accepted": "See: carrel ps"}})  # fmt: skip  # grouped
            case "GET", ["requests", id_]:
                say(200, fake.requests[id_])
            case "DELETE", ["requests", id_]:
                say(200, fake.stop(id_, {"cause": "cancelled"}))
            case "GET", ["requests", id_, "events"]:
                self.stream(id_)
            case "GET", ["requests", id_, "log"]:
                part = fake.logs.get(id_, b"")[int(self.query["offset"][0]) :]
                self.answer(200, part, "text/plain")
            case "GET", ["requests", id_, "output"]:
                named = {"Content-Disposition": 'attachment; filename="train-out.ipynb"'}
                self.answer(200, fake.outputs[id_], "application/x-ipynb+json", named)
            case "GET", ["requests", id_, "files"]:
                say(200, {"files": [
                    {"name": name, "size": len(content), "modified_at": 1000.0}
                    for name, content in fake.files.get(id_, {}).items()
                ]})  # fmt: skip  # grouped by meaning
            case "GET", ["requests", id_, "files", *parts]:
                self.answer(200, fake.files[id_][unquote("/".join(parts))], "application/x-any")
            case "POST", ["requests", id_, "stop"]:
                say(200, fake.stop(id_, body))
            case "POST", ["leases", lease, what] if what in fake.conflicts:
                fake.conflicts.remove(what)
                say(409, {"error": {"code": "stale_epoch", "message": "Another session has it."}})
                if what == "launch":
                    fake.grant(lease.split(".")[0])
            case "POST", ["leases", lease, "launch"] if "cancel" in fake.conflicts:
                fake.conflicts.remove("cancel")
                fake.end(fake.requests[lease.split(".")[0]])
                say(409, {"error": {"code": "stale_epoch", "message": "It has ended."}})
            case "POST", ["leases", lease, "launch"]:
                fake.change(lease.split(".")[0], state="starting")
                say(200, fake.requests[lease.split(".")[0]])
            case "POST", ["leases", lease, "started"]:
                id_ = lease.split(".")[0]
                fake.change(id_, state="running", lease=fake.requests[id_]["lease"] | body)
                say(200, fake.requests[id_])
            case _:
                say(404, {"error": {"code": "not_found", "message": "No such thing."}})

    def listed(self) -> dict[str, Any]:
        """Return a page; the cursor is the number of requests before it."""
        found = [
            request for request in self.fake.requests.values()
            if request["state"] in self.query.get("state", [request["state"]])
            and request["kind"] in self.query.get("kind", [request["kind"]])
            and all(
                request.get("labels", {}).get(label.partition("=")[0]) == label.partition("=")[2]
                for label in self.query.get("label", [])
            )
        ]  # fmt: skip  # grouped by meaning
        begin = int(self.query.get("cursor", ["0"])[0])
        end = begin + min(self.fake.page, int(self.query.get("limit", ["200"])[0]))
        return {"requests": found[begin:end], "next": str(end) if end < len(found) else ""}

    def refuse(self, status: int, error: dict[str, Any], say: Callable[..., None]) -> None:
        problem = {
            "type": error.get("type", "about:blank"), "title": "No", "status": status,
            "detail": error["message"],
            "code": error["code"], "accepted": error.get("accepted", ""),
            "field": error.get("field", ""),
        }  # fmt: skip  # grouped by meaning
        say(status, problem if self.fake.problems else {"error": error})

    def pass_on(self, port: int) -> None:
        headers = {k: v for k, v in self.headers.items() if k.lower() != "accept-encoding"}
        with httpx.Client(trust_env=False) as http:
            answer = http.request(
                self.command,
                f"http://127.0.0.1:{port}{self.path}",
                content=self.raw,
                headers=headers,
            )
        self.send_response(answer.status_code)
        for name, value in answer.headers.multi_items():
            if name not in {"content-length", "transfer-encoding", "content-encoding"}:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    def say(self, status: int, body: Any) -> None:
        self.answer(status, json.dumps(body).encode(), "application/json")

    def answer(
        self, status: int, body: bytes, kind: str, headers: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def stream(self, id_: str) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        after = int(self.headers.get("Last-Event-ID") or self.query.get("after", ["0"])[0])
        said: dict[str, Any] | None = None
        while True:
            with self.fake.news:
                request = self.fake.requests[id_]
                events = [e for e in self.fake.events.get(id_, []) if e["id"] > after]
                idle = request == said and not events and not self.fake.news.wait(0.2)
                if self.fake.closing:
                    return
                request = self.fake.requests[id_]
            if idle:
                self.send(": still here")
                self.fake.beats[id_] += 1
            for event in events:
                after = event["id"]
                self.send(f"id: {after}\nevent: {event['kind']}\ndata: {_raw(event)}")
            if request != said:
                said = request
                self.send("event: status\ndata: " + _raw(request))
                with self.fake.news:
                    self.fake.shown.append((id_, request["state"]))
                    self.fake.news.notify_all()
            if request["ended"] and not events:
                self.send("event: end\ndata: {}")
                return

    def send(self, text: str) -> None:
        self.wfile.write((text + "\n\n").encode())
        self.wfile.flush()


def _raw(body: Any) -> str:
    """Serialise as the service does: characters beyond ASCII are not escaped."""
    return json.dumps(body, ensure_ascii=False)


def eventually(found: Callable[[], object], seconds: float = 60.0) -> None:
    """Poll for a condition that has no other notification, such as processes and files."""
    deadline = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)
