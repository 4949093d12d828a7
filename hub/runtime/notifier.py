"""One heartbeat for everything that follows the store: loop, event streams, pages.

Whoever changes something beats; whoever follows waits for a beat later than the one it saw.
Beats may come from any thread.
"""

from __future__ import annotations

import asyncio
import contextlib


class ChangeNotifier:
    """A counter that can be awaited."""

    def __init__(self) -> None:
        self.count = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiters: set[asyncio.Future[None]] = set()

    def bind(self) -> None:
        """Attach to the running event loop."""
        self._loop = asyncio.get_running_loop()

    def beat(self) -> None:
        """Wake everybody. Before ``bind`` there is nobody to wake."""
        self.count += 1
        if self._loop is not None:
            # The loop may be closing while a thread still finishes its work.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, set()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def after(self, seen: int, timeout: float) -> int:
        """Return the count once it has passed ``seen``, or after ``timeout`` seconds."""
        if self.count == seen:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.add(waiter)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(waiter, timeout)
            self._waiters.discard(waiter)
        return self.count
