"""The HTTP server of served models, on a Unix socket.

GET  /               a page that calls the API
GET  /compare        a page that compares the results of all pipelines of a shelf
GET  /openapi.json   its description
GET  /status         how many requests were answered, refused, late, failed; what runs now
POST /models/NAME    {"rows": [...], "deadline": seconds} → {"results": [...]}
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_unix_socket
from tornado.web import Application, RequestHandler

from ...hub.errors import CarrelError, InvalidInput, NotFound, TooManyCalls
from . import comparison_page
from .api_document import SCRIPT, openapi, page
from .json_values import dumped, parsed
from .model_results import ModelFailed, UnusableResult, raised
from .request_queue import RequestQueue
from .served_models import has_all_results

MOST_BYTES: Final = 16 << 20
LONGEST_SECONDS: Final = 100.0
"""Longest deadline: what passes calls on waits two minutes."""
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_SCRIPTS: Final = {"page.js": SCRIPT, "compare.js": comparison_page.SCRIPT}


class _ModelHandler(RequestHandler):
    def initialize(self, title: str, queue: RequestQueue, deadline: float) -> None:
        self.title, self.queue, self.deadline = title, queue, deadline

    def set_default_headers(self) -> None:
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Cache-Control", "no-store")

    def send(self, body: object) -> None:
        try:
            text = dumped(body)
        except (TypeError, ValueError) as error:
            raise UnusableResult(
                f"The result of the model cannot be sent as JSON: {error}.",
                accepted="Numbers, texts, lists and dicts; no NaN.",
            ) from error
        self.set_header("Content-Type", "application/json")
        self.write(text)

    def refuse(self, error: CarrelError) -> None:
        self.set_status(error.http_status)
        self.send(
            {"error": {"code": error.code, "message": error.message, "accepted": error.accepted}}
        )

    def write_error(self, status_code: int, **_about: Any) -> None:
        """Say in JSON what tornado has refused: another method, or an address or form body."""
        sentence = f"{self.request.method} is refused here: {self._reason}."
        self.set_header("Content-Type", "application/json")
        self.finish(dumped({"error": {"code": "refused", "message": sentence, "accepted": ""}}))


class PageHandler(_ModelHandler):
    async def get(self, part: str) -> None:
        if part == "openapi.json":
            self.send(openapi(self.title, self.queue.models, self.deadline))
        elif part == "status":
            running = self.queue.running()
            executing = running and {"model": running[0], "seconds": round(running[1], 3)}
            self.send(asdict(self.queue.counts) | {"executing": executing})
        elif part in _SCRIPTS:
            self.set_header("Content-Type", "text/javascript")
            self.write(_SCRIPTS[part])
        elif part == "compare":
            self._compare()
        else:
            self.set_header("Content-Security-Policy", _POLICY)
            self.write(
                page(self.title, self.queue.models, compared=has_all_results(self.queue.models))
            )

    def _compare(self) -> None:
        if not has_all_results(self.queue.models):
            self.refuse(
                NotFound(
                    "Only the pipelines of a folder or a Shelf can be compared.",
                    accepted="carrel serve FOLDER.",
                )
            )
            return
        self.set_header("Content-Security-Policy", _POLICY)
        count = len(self.queue.models) - 1
        most = self.queue.queued_rows
        self.write(comparison_page.comparison_page(self.title, count, most, LONGEST_SECONDS))


class CallHandler(_ModelHandler):
    call: asyncio.Future[list[Any]] | None = None

    def on_connection_close(self) -> None:
        """Take the rows out of the queue: their caller has gone."""
        if self.call is not None:
            self.call.cancel()

    async def post(self, model: str) -> None:
        try:
            rows, seconds = _body(self.request.body, self.deadline)
            size = len(self.request.body)
            self.call = asyncio.ensure_future(
                self.queue.execute(model, rows, seconds, sent_bytes=size)
            )
            self.send({"results": await self.call})
        except asyncio.CancelledError:
            return
        except TooManyCalls as error:
            self.set_header("Retry-After", str(error.seconds))
            self.refuse(error)
        except CarrelError as error:
            self.refuse(error)
        except Exception as error:  # what a model of the user raises
            self.refuse(ModelFailed(f"The model raised {raised(error)}"))


class UnknownHandler(_ModelHandler):
    def prepare(self) -> None:
        error = NotFound("There is no such address.", accepted="models/NAME, or openapi.json.")
        self.set_status(error.http_status)
        self.send({"error": {"code": error.code, "message": str(error)}})
        self.finish()


def application(title: str, queue: RequestQueue, deadline: float) -> Application:
    """Return the application of these models."""
    given = {"title": title, "queue": queue, "deadline": deadline}
    return Application(
        [
            (r"/(openapi\.json|status|page\.js|compare|compare\.js|)", PageHandler, given),
            (r"/models/([^/]+)", CallHandler, given),
            (r"/.*", UnknownHandler, given),
        ],
        log_function=lambda _handler: None,
    )


async def serve(
    title: str,
    queue: RequestQueue,
    path: Path,
    *,
    deadline: float,
    ready: Callable[[], None],
) -> None:
    """Answer calls on a socket until SIGINT or SIGTERM.

    Args:
        ready: called when calls are accepted.
    """
    server = HTTPServer(application(title, queue, deadline), max_buffer_size=MOST_BYTES)
    server.add_socket(bind_unix_socket(str(path), mode=0o600))
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    worker = asyncio.create_task(queue.work())
    worker.add_done_callback(lambda _task: ended.set())
    try:
        ready()
        await ended.wait()
        if worker.done():
            worker.result()
    finally:
        worker.cancel()
        server.stop()
        await server.close_all_connections()


def _body(sent: bytes, deadline: float) -> tuple[list[Any], float]:
    accepted = 'A JSON object such as {"rows": ["a text", "another one"]}.'
    try:
        body = parsed(sent)
    except ValueError as error:
        raise InvalidInput(f"The body is not JSON: {error}.", accepted=accepted) from error
    if not isinstance(body, dict) or not isinstance(body.get("rows"), list):
        raise InvalidInput("The body has no list of rows.", accepted=accepted)
    if unknown := sorted(body.keys() - {"rows", "deadline"}):
        raise InvalidInput(
            f"The body has unknown parts: {', '.join(unknown[:5])[:200]}.", accepted=accepted
        )
    seconds = body.get("deadline", deadline)
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not number or not 0 < seconds <= LONGEST_SECONDS:
        raise InvalidInput(
            f"The deadline {dumped(seconds):.40} is not possible.",
            accepted=f"A number of seconds above 0, at most {LONGEST_SECONDS:g}.",
        )
    return body["rows"], float(seconds)
