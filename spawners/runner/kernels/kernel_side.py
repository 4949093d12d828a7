"""Limit the messages of a Python kernel; runs inside the kernel.

The runner reads this file as text and executes it in the kernel, which may be in another
environment: it needs only the standard library. It wraps the function through which all output of
a cell leaves the kernel. A kernel without that function is left unchanged: the runner limits its
messages anyway.
"""

from __future__ import annotations

import importlib
import json
import threading
from typing import Any

FREE_MESSAGES = 2000
"""Stream messages of a cell that are sent individually; later ones are merged."""
COLLECT_SECONDS = 0.2
QUEUED_MESSAGES = 10_000
"""How many messages wait for a busy machine; ZeroMQ drops more, by default more than 1,000."""


class MessageBounds:
    """Wraps ``Session.send`` of the kernel, to merge and shorten messages."""

    def __init__(self, send: Any, printed: int, shown: int) -> None:
        self._send = send
        self._printed = printed
        self._shown = shown
        self._lock = threading.RLock()
        self._parent = ""
        self._count = 0
        self._pending: tuple[Any, dict[str, Any], dict[str, Any]] | None = None

    def send(self, stream: Any, message: Any, content: Any = None, *args: Any, **more: Any) -> Any:
        kind = message["msg_type"] if isinstance(message, dict) else message
        body: Any = message.get("content") if isinstance(message, dict) else content
        with self._lock:
            if kind == "stream" and isinstance(message, dict):
                if self._collect(stream, message, more):
                    return message
                self._cut_text(body)
            else:
                self.release()
                has_data = isinstance(body, dict) and isinstance(body.get("data"), dict)
                if has_data and not str(kind).startswith("comm"):
                    self._cut_data(body)
            return self._send(stream, message, content, *args, **more)

    def release(self) -> None:
        """Send the collected text."""
        with self._lock:
            if self._pending is not None:
                stream, message, more = self._pending
                self._pending = None
                self._cut_text(message["content"])
                self._send(stream, message, **more)

    def _collect(self, stream: Any, message: dict[str, Any], more: dict[str, Any]) -> bool:
        parent = message.get("parent_header", {}).get("msg_id", "")
        if parent != self._parent:
            self.release()
            self._parent, self._count = parent, 0
        self._count += 1
        if self._pending is not None:
            pending = self._pending[1]["content"]
            if pending["name"] == message["content"]["name"]:
                pending["text"] += message["content"]["text"]
                self._cut_text(pending)
                return True
            self.release()
        if self._count <= FREE_MESSAGES:
            return False
        self._pending = (stream, message, more)
        timer = threading.Timer(COLLECT_SECONDS, self.release)
        timer.daemon = True
        timer.start()
        return True

    def _cut_text(self, body: dict[str, Any]) -> None:
        text = body["text"]
        excess = len(text) - self._printed
        # Merged text may grow to twice the limit, so that it is not copied at every print.
        if excess > (self._printed if self._pending else 0):
            half = self._printed // 2
            # Cut at the same position as before, so that the text has only one gap.
            at = body.get("carrel_at", 0)
            head, rest = text[:at], fold(text[at:])
            excess = len(head) + len(rest) - self._printed
            if excess > 0:
                if not at:
                    head, rest = rest[:half], rest[half:]
                excess = max(0, len(rest) - half)
                rest = rest[excess:]
                body["carrel_at"] = len(head)
                body["carrel_cut"] = body.get("carrel_cut", 0) + excess
            body["text"] = head + rest

    def _cut_data(self, body: dict[str, Any]) -> None:
        kept: dict[str, Any] = {}
        notes = []
        for kind, value in body["data"].items():
            plain = isinstance(value, (str, bytes))
            size = len(value) if plain else len(json.dumps(value, default=str))
            if size <= self._shown:
                kept[kind] = value
            else:
                body["carrel_cut"] = body.get("carrel_cut", 0) + size
                notes.append(f"[{kind} of {size / 2**20:.1f} MiB left out]")
        if notes:
            known = [kept["text/plain"]] if "text/plain" in kept else []
            kept["text/plain"] = "\n".join([*known, *notes])
        body["data"] = kept


def fold(text: str) -> str:
    """Return the text as a terminal shows it; the first line may continue an earlier message."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        body = line.rstrip("\r")
        if "\r" in body:
            start = "" if number else "\r"
            lines[number] = start + body.rsplit("\r", 1)[-1] + ("\r" if body != line else "")
    return "\n".join(lines)


def lengthen_queue(thread: Any) -> None:
    """Lengthen the queue of published messages, in the thread that owns its socket."""
    option = importlib.import_module("zmq").SNDHWM
    thread.schedule(lambda: thread.socket.setsockopt(option, QUEUED_MESSAGES))


def install(printed: int, shown: int) -> None:
    try:
        kernel = globals()["get_ipython"]().kernel
        bounds = MessageBounds(kernel.session.send, printed, shown)
        kernel.session.send = bounds.send
        lengthen_queue(kernel.iopub_thread)
    except (AttributeError, ImportError, KeyError):
        return
