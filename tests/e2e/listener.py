"""A web server that records requests; tests assert that there are none."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Listener:
    """Listens until its ``with`` block ends."""

    url: str
    asked: list[str] = field(default_factory=list)

    @classmethod
    @contextmanager
    def opened(cls) -> Iterator[Listener]:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                made.asked.append(self.path)
                self.send_response(204)
                self.end_headers()

            do_POST = do_GET

            def log_message(self, *_: object) -> None:
                """Keep the output of the tests free of logs."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        made = cls(url=f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield made
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
