"""A small real mail server and a small real webhook receiver on this machine, for tests."""

from __future__ import annotations

import email
import email.policy
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from json import loads
from typing import Any, cast


@dataclass
class MailServer:
    """Keeps what it accepts (RFC 5321, without extensions).

    Attributes:
        port: on 127.0.0.1.
        messages: accepted messages, with the recipient of the envelope in X-Recipient.
        refusals: reply to RCPT for a recipient, such as ``550 5.1.1 no such user``.
        away: whether it closes every connection at once.
    """

    port: int = 0
    messages: list[EmailMessage] = field(default_factory=list)
    refusals: dict[str, str] = field(default_factory=dict)
    away: bool = False

    @property
    def bodies(self) -> list[str]:
        return [text_of(message) for message in self.messages]

    def link(self, word: str, *, number: int = -1) -> str:
        """Return the address with this word in it, of a message."""
        words = self.bodies[number].split()
        return next(each for each in words if each.startswith("http") and word in each)


def text_of(message: EmailMessage) -> str:
    """Return the plain text of a message."""
    part = message.get_body(("plain",))
    assert part is not None
    return str(part.get_content()).replace("\r\n", "\n")


class _Handler(socketserver.StreamRequestHandler):
    @property
    def mail(self) -> MailServer:
        return cast(_Server, self.server).mail

    def handle(self) -> None:
        if self.mail.away:
            return
        self._say("220 sink.example.edu")
        recipient = ""
        while line := self.rfile.readline().decode("latin-1").strip():
            match line.split()[0].upper():
                case "EHLO" | "HELO":
                    self._say("250 sink.example.edu")
                case "RCPT":
                    recipient = line.partition("<")[2].partition(">")[0]
                    self._say(self.mail.refusals.get(recipient, "250 ok"))
                case "DATA":
                    self._say("354 go on")
                    self._accept(recipient)
                case "QUIT":
                    self._say("221 bye")
                    return
                case _:
                    self._say("250 ok")

    def _accept(self, recipient: str) -> None:
        lines = []
        while (line := self.rfile.readline()) != b".\r\n":
            lines.append(line.removeprefix(b"."))
        found = email.message_from_bytes(b"".join(lines), policy=email.policy.default)
        message = cast(EmailMessage, found)
        message["X-Recipient"] = recipient
        self.mail.messages.append(message)
        self._say("250 kept")

    def _say(self, reply: str) -> None:
        self.wfile.write(f"{reply}\r\n".encode())


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    mail: MailServer

    def handle_error(self, request: object, client_address: object) -> None:
        """Stay silent about a client that closes its connection before the greeting."""


@contextmanager
def mail_server() -> Iterator[MailServer]:
    """Run a mail server inside the block."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.mail = MailServer(port=server.server_address[1])
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield server.mail
        finally:
            server.shutdown()


@dataclass
class Webhook:
    """Keeps the bodies that it gets; answers with ``status``, and ``location`` where it is set."""

    port: int = 0
    status: int = 200
    location: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def webhook() -> Iterator[Webhook]:
    """Run a receiver of webhooks inside the block."""
    hook = Webhook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            hook.bodies.append(loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(hook.status)
            if hook.location:
                self.send_header("Location", hook.location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Stay silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        hook.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield hook
        finally:
            server.shutdown()
