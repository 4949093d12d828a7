"""Wake the subscribers of the store: the scheduling loop, event streams and pages.

Code that changes the store calls ``notify``, from any thread. Subscribers wait for a version later
than the one that they saw.
"""

from __future__ import annotations

import asyncio
import contextlib


class ChangeNotifier:
    """A version number that can be awaited."""

    def __init__(self) -> None:
        self.version = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiters: set[asyncio.Future[None]] = set()

    def bind(self) -> None:
        """Attach to the running event loop."""
        self._loop = asyncio.get_running_loop()

    def notify(self) -> None:
        """Increase the version and wake all waiters; before ``bind`` there are none."""
        self.version += 1
        if self._loop is not None:
            # The event loop may close while a thread finishes its work.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, set()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self, seen: int, timeout: float) -> int:
        """Wait until the version differs from ``seen``, at most ``timeout`` seconds; return it."""
        if self.version == seen:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.add(waiter)
            try:
                # Not ``asyncio.wait_for``: on Python 3.11 it swallows a cancellation that arrives
                # while the waiter is being woken, and its caller never ends.
                async with asyncio.timeout(timeout):
                    await waiter
            except TimeoutError:
                pass
            finally:
                self._waiters.discard(waiter)
        return self.version
