"""Runs inside a Python kernel: keeps its messages small, so that nobody has to hold a huge one.

The runner reads this file as text and executes it in the kernel, which may be of another
environment: only the standard library, and nothing of Carrel. It wraps the one function
through which all that a cell prints and shows leaves the kernel. A kernel that works otherwise
is left as it is; the runner bounds what comes from it anyway.
"""

from __future__ import annotations

import json
import threading
from typing import Any

FREE_MESSAGES = 2000
"""Prints of one cell that are sent one by one; those that follow are collected."""
COLLECT_SECONDS = 0.2


class MessageBounds:
    """Stands before ``Session.send`` of the kernel."""

    def __init__(self, send: Any, printed: int, shown: int) -> None:
        self._send = send
        self._printed = printed
        self._shown = shown
        self._lock = threading.RLock()
        self._parent = ""
        self._count = 0
        self._held: tuple[Any, dict[str, Any], dict[str, Any]] | None = None

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
                shows = isinstance(body, dict) and isinstance(body.get("data"), dict)
                if shows and not str(kind).startswith("comm"):
                    self._cut_data(body)
            return self._send(stream, message, content, *args, **more)

    def release(self) -> None:
        """Send what was collected."""
        with self._lock:
            if self._held is not None:
                stream, message, more = self._held
                self._held = None
                self._cut_text(message["content"])
                self._send(stream, message, **more)

    def _collect(self, stream: Any, message: dict[str, Any], more: dict[str, Any]) -> bool:
        parent = message.get("parent_header", {}).get("msg_id", "")
        if parent != self._parent:
            self.release()
            self._parent, self._count = parent, 0
        self._count += 1
        if self._held is not None:
            before = self._held[1]["content"]
            if before["name"] == message["content"]["name"]:
                before["text"] += message["content"]["text"]
                self._cut_text(before)
                return True
            self.release()
        if self._count <= FREE_MESSAGES:
            return False
        self._held = (stream, message, more)
        timer = threading.Timer(COLLECT_SECONDS, self.release)
        timer.daemon = True
        timer.start()
        return True

    def _cut_text(self, body: dict[str, Any]) -> None:
        text = body["text"]
        over = len(text) - self._printed
        # Twice the limit before it is cut: collected text is not copied at every print.
        if over > (self._printed if self._held else 0):
            half = self._printed // 2
            # Where it was cut before, it is cut again: the runner is told of one gap.
            at = body.get("carrel_at", 0)
            head, rest = text[:at], folded(text[at:])
            over = len(head) + len(rest) - self._printed
            if over > 0:
                if not at:
                    head, rest = rest[:half], rest[half:]
                over = max(0, len(rest) - half)
                rest = rest[over:]
                body["carrel_at"] = len(head)
                body["carrel_cut"] = body.get("carrel_cut", 0) + over
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


def folded(text: str) -> str:
    """What a terminal would show; the first line may go on from an earlier message."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        body = line.rstrip("\r")
        if "\r" in body:
            start = "" if number else "\r"
            lines[number] = start + body.rsplit("\r", 1)[-1] + ("\r" if body != line else "")
    return "\n".join(lines)


def install(printed: int, shown: int) -> None:
    try:
        session = globals()["get_ipython"]().kernel.session
        bounds = MessageBounds(session.send, printed, shown)
        session.send = bounds.send
    except (AttributeError, KeyError):
        return
