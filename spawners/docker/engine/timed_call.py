"""Asks what may take long, and waits only for a while: a slow engine holds nobody else up."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from concurrent.futures import TimeoutError as NotYet
from typing import Generic, TypeVar

from ....hub.errors import Unavailable

T = TypeVar("T")


class TimedCall(Generic[T]):
    """One question, asked in a thread of its own, at most once at a time.

    While an earlier asking has not come back the question is not asked again, and whoever wants
    an answer is told so at once: what it might still bring is of before they asked.
    """

    def __init__(self, ask: Callable[[], T], slow: str) -> None:
        """``slow`` is the sentence for those that are not answered in time."""
        self._ask = ask
        self._slow = slow
        self._turn = threading.Lock()
        self._lock = threading.Lock()
        self._late: Future[T] | None = None

    def answer(self, patience: float) -> T:
        """Raises Unavailable where there is none within ``patience`` seconds."""
        with self._lock:
            if self._late is not None and not self._late.done():
                raise Unavailable(self._slow)
        # Those that ask at the same time take turns: each gets an answer of its own moment.
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
        """Let an asking that was late come back, for those that can wait for it."""
        with self._lock:
            late = self._late
        if late is not None:
            wait((late,), patience)

    def _run(self, asked: Future[T]) -> None:
        try:
            asked.set_result(self._ask())
        except BaseException as error:  # raised where the answer is waited for
            asked.set_exception(error)
