"""Limit the wait for a call that may take long, so that a slow engine does not delay callers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from concurrent.futures import TimeoutError as NotYet
from typing import Generic, TypeVar

from ....hub.errors import Unavailable

T = TypeVar("T")


class TimedCall(Generic[T]):
    """A function that is called in a thread of its own, never twice at the same time.

    While a call is late, other callers get Unavailable at once: the late result would be older than
    their own call.

    Args:
        function: the function to call.
        slow: the message of Unavailable for callers that get no result in time.
    """

    def __init__(self, function: Callable[[], T], slow: str) -> None:
        self._function = function
        self._slow = slow
        self._turn = threading.Lock()
        self._lock = threading.Lock()
        self._late: Future[T] | None = None

    def result(self, patience: float) -> T:
        """Call the function and return its result.

        Raises:
            Unavailable: there was no result within ``patience`` seconds.
        """
        with self._lock:
            if self._late is not None and not self._late.done():
                raise Unavailable(self._slow)
        # Concurrent callers take turns, so that no result is older than its call.
        if not self._turn.acquire(timeout=patience):
            raise Unavailable(self._slow)
        try:
            future: Future[T] = Future()
            threading.Thread(target=self._run, args=(future,), daemon=True).start()
            try:
                return future.result(patience)
            except NotYet:
                with self._lock:
                    self._late = future
                raise Unavailable(self._slow) from None
        finally:
            self._turn.release()

    def settle(self, patience: float) -> None:
        """Wait up to ``patience`` seconds for a late call to return."""
        with self._lock:
            late = self._late
        if late is not None:
            wait((late,), patience)

    def _run(self, future: Future[T]) -> None:
        try:
            future.set_result(self._function())
        except BaseException as error:  # raised in result()
            future.set_exception(error)
