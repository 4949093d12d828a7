"""Waiting for requests in a terminal, and the exit status that tells how they ended."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..client import Client
from ..errors import CarrelError
from ..wire import EventOut, RequestOut

SUCCEEDED, FAILED, CANCELLED, TIMED_OUT, STILL_RUNNING, NO_ANSWER = 0, 1, 3, 4, 5, 6
STATUS_HELP = """\b
Exit status:
  0  all succeeded
  1  one failed
  2  the command was not understood
  3  one was cancelled
  4  one was ended by its time limit
  5  --timeout is over and one has not ended
  6  refused, no such request, or Carrel does not answer"""

_BY_STATE = {"succeeded": SUCCEEDED, "cancelled": CANCELLED, "timed_out": TIMED_OUT}
_WORST_FIRST = (FAILED, TIMED_OUT, CANCELLED, SUCCEEDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Something new about one of the requests; ``error`` where following it broke."""

    request_id: str
    item: RequestOut | EventOut | None = None
    error: CarrelError | None = None


def exit_status(ends: Sequence[RequestOut]) -> int:
    """The worst of them: failed, then timed out, then cancelled."""
    found = {_BY_STATE.get(request.state, FAILED) for request in ends}
    return next((status for status in _WORST_FIRST if status in found), SUCCEEDED)


def follow_all(
    client: Client, request_ids: Sequence[str], timeout: float | None
) -> Iterator[Change]:
    """Changes of all of them until each has ended, or until ``timeout`` seconds are over."""
    changes: queue.Queue[Change] = queue.Queue()
    for request_id in request_ids:
        # Daemons: whoever stops listening need not wait for a silent stream.
        threading.Thread(
            target=_follow_one, args=(client, request_id, changes), daemon=True
        ).start()
    deadline = None if timeout is None else time.monotonic() + timeout
    left = set(request_ids)
    while left:
        try:
            patience = None if deadline is None else max(0.0, deadline - time.monotonic())
            change = changes.get(timeout=patience)
        except queue.Empty:
            return
        if change.error is not None:
            raise change.error
        if change.item is None:
            left.discard(change.request_id)
        else:
            yield change


def _follow_one(client: Client, request_id: str, changes: queue.Queue[Change]) -> None:
    """``item`` and ``error`` both None say that it has ended."""
    try:
        for item in client.follow(request_id):
            changes.put(Change(request_id=request_id, item=item))
        changes.put(Change(request_id=request_id))
    except CarrelError as error:
        changes.put(Change(request_id=request_id, error=error))
