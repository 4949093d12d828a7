"""Queue the launches of servers, so that only a few start at the same time on a machine.

Twenty servers that start together on two cores are all as late as the last one, late enough to
count as dead. If only a few start at a time, starts are fast and the first server is ready soon.
"""

from __future__ import annotations

import asyncio
from bisect import insort
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count

Report = Callable[[int], None]
"""Receives the position in the queue, from 1."""


@dataclass(order=True, slots=True)
class _QueuedStart:
    later: bool
    number: int
    turn: asyncio.Future[None] = field(compare=False)
    report: Report = field(compare=False)


class StartQueue:
    """The start queue of one machine, for the tasks of one event loop."""

    def __init__(self) -> None:
        self._busy = 0
        self._queue: list[_QueuedStart] = []
        self._numbers = count()

    @asynccontextmanager
    async def slot(
        self, limit: int, report: Report, *, holds_device: bool = False
    ) -> AsyncIterator[None]:
        """Wait until fewer than ``limit`` servers are starting.

        Args:
            report: receives the position in the queue when it changes.
            holds_device: precede starts without a device, because the device blocks other requests.
        """
        if self._busy < limit and not self._queue:
            self._busy += 1
        else:
            await self._wait(report, holds_device=holds_device)
        try:
            yield
        finally:
            self._release()

    async def _wait(self, report: Report, *, holds_device: bool) -> None:
        turn = asyncio.get_running_loop().create_future()
        entry = _QueuedStart(not holds_device, next(self._numbers), turn, report)
        insort(self._queue, entry)
        self._report()
        try:
            await turn
        except asyncio.CancelledError:
            if entry in self._queue:
                self._queue.remove(entry)
                self._report()
            else:
                self._release()
            raise

    def _release(self) -> None:
        # A start that was just cancelled stays in the queue until its task has noticed.
        successor = next((entry for entry in self._queue if not entry.turn.done()), None)
        if successor is None:
            self._busy -= 1
            return
        self._queue.remove(successor)
        successor.turn.set_result(None)
        self._report()

    def _report(self) -> None:
        for position, entry in enumerate(self._queue, 1):
            entry.report(position)
