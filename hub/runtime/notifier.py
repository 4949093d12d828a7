"""Wake everything that follows the store: the scheduling loop, event streams and pages.

Code that changes something calls ``notify``, from any thread. Code that follows changes waits
for a version later than the one that it saw.
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
        """Raise the version and wake all waiters. Before ``bind`` there are none."""
        self.version += 1
        if self._loop is not None:
            # The loop may be closing while a thread still finishes its work.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, set()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self, seen: int, timeout: float) -> int:
        """Return the version once it has passed ``seen``, or after ``timeout`` seconds."""
        if self.version == seen:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.add(waiter)
            try:
                # Not ``asyncio.wait_for``: on Python 3.11 it swallows a cancellation that comes
                # in the moment in which the waiter is woken, and its caller runs on for ever.
                async with asyncio.timeout(timeout):
                    await waiter
            except TimeoutError:
                pass
            finally:
                self._waiters.discard(waiter)
        return self.version
