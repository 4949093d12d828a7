"""Run a call that may take long with a limited wait: a slow engine delays no caller."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from concurrent.futures import TimeoutError as NotYet
from typing import Generic, TypeVar

from ....hub.errors import Unavailable

T = TypeVar("T")


class TimedCall(Generic[T]):
    """One call, made in a thread of its own, at most once at a time.

    While an earlier call has not returned, callers get Unavailable at once, and the call is not
    repeated: its late result would be older than their question.
    """

    def __init__(self, ask: Callable[[], T], slow: str) -> None:
        """``slow`` is the message of Unavailable for callers that get no result in time."""
        self._ask = ask
        self._slow = slow
        self._turn = threading.Lock()
        self._lock = threading.Lock()
        self._late: Future[T] | None = None

    def answer(self, patience: float) -> T:
        """Return the result. Raises Unavailable if there is none within ``patience`` seconds."""
        with self._lock:
            if self._late is not None and not self._late.done():
                raise Unavailable(self._slow)
        # Concurrent callers take turns: each gets a result that is not older than its call.
        if not self._turn.acquire(timeout=patience):
            raise Unavailable(self._slow)
        try:
            asked: Future[T] = Future()
            threading.Thread(target=self._run, args=(asked,), daemon=True).start()
            try:
                return asked.result(patience)
            except NotYet:
                with self._lock:
                    self._late = asked
                raise Unavailable(self._slow) from None
        finally:
            self._turn.release()

    def settle(self, patience: float) -> None:
        """Wait for a late call to return, for callers that can afford it."""
        with self._lock:
            late = self._late
        if late is not None:
            wait((late,), patience)

    def _run(self, asked: Future[T]) -> None:
        try:
            asked.set_result(self._ask())
        except BaseException as error:  # raised in answer()
            asked.set_exception(error)
