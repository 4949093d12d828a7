"""Follow several requests at the same time in a program without an event loop."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..errors import CarrelError
from ..schemas import EventOut, RequestOut
from .sync_client import Client


@dataclass(frozen=True, slots=True, kw_only=True)
class JobUpdate:
    """An update of a request: its status, an event, or a part of its log."""

    request_id: str
    item: RequestOut | EventOut | None = None
    printed: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """The end of a thread that follows a request, with the error if it failed."""

    error: CarrelError | None = None


def follow_all(
    client: Client,
    request_ids: Sequence[str],
    timeout: float | None = None,
    *,
    logs_of: Sequence[str] = (),
) -> Iterator[JobUpdate]:
    """Yield updates of all requests until all have ended, or until ``timeout`` seconds have passed.

    Args:
        logs_of: the requests whose log is followed too.
    """
    changes: queue.Queue[JobUpdate | _End] = queue.Queue()
    jobs = [(_follow, request_id) for request_id in request_ids]
    jobs += [(_follow_log, request_id) for request_id in logs_of]
    for target, request_id in jobs:
        # Daemon threads, so that a caller that stops listening need not wait for an idle stream.
        threading.Thread(target=target, args=(client, request_id, changes), daemon=True).start()
    deadline = None if timeout is None else time.monotonic() + timeout
    running = len(jobs)
    while running:
        try:
            remaining = None if deadline is None else max(0.0, deadline - time.monotonic())
            change = changes.get(timeout=remaining)
        except queue.Empty:
            return
        if isinstance(change, JobUpdate):
            yield change
        elif change.error is not None:
            raise change.error
        else:
            running -= 1


def _follow(client: Client, request_id: str, changes: queue.Queue[JobUpdate | _End]) -> None:
    try:
        for item in client.follow(request_id):
            changes.put(JobUpdate(request_id=request_id, item=item))
        changes.put(_End())
    except CarrelError as error:
        changes.put(_End(error=error))


def _follow_log(client: Client, request_id: str, changes: queue.Queue[JobUpdate | _End]) -> None:
    try:
        for part in client.follow_log(request_id):
            changes.put(JobUpdate(request_id=request_id, printed=part))
        changes.put(_End())
    except CarrelError as error:
        changes.put(_End(error=error))
