"""Whose server starts now, where many are asked for at once.

Twenty servers that start together on two cores are all ready as late as the last one would be
after the others, and late enough to be taken for dead. One after another, a few at a time, each
has its own time, and the first is there soon.
"""

from __future__ import annotations

import asyncio
from bisect import insort
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count

Tell = Callable[[int], None]
"""Takes the place in the line, from 1."""


@dataclass(order=True, slots=True)
class _Waiting:
    later: bool
    number: int
    turn: asyncio.Future[None] = field(compare=False)
    tell: Tell = field(compare=False)


class StartQueue:
    """Of one machine; for the tasks of one event loop."""

    def __init__(self) -> None:
        self._busy = 0
        self._line: list[_Waiting] = []
        self._numbers = count()

    @asynccontextmanager
    async def take(self, most: int, tell: Tell, *, dear: bool = False) -> AsyncIterator[None]:
        """Wait until fewer than ``most`` have their turn.

        ``dear``: holds something that others wait for, and goes before those that do not.
        """
        if self._busy < most and not self._line:
            self._busy += 1
        else:
            await self._wait(tell, dear=dear)
        try:
            yield
        finally:
            self._hand_on()

    async def _wait(self, tell: Tell, *, dear: bool) -> None:
        turn = asyncio.get_running_loop().create_future()
        mine = _Waiting(not dear, next(self._numbers), turn, tell)
        insort(self._line, mine)
        self._tell()
        try:
            await turn
        except asyncio.CancelledError:
            if mine in self._line:
                self._line.remove(mine)
                self._tell()
            else:
                self._hand_on()
            raise

    def _hand_on(self) -> None:
        # One that was cancelled a moment ago stands in the line until its task has noticed.
        following = next((each for each in self._line if not each.turn.done()), None)
        if following is None:
            self._busy -= 1
            return
        self._line.remove(following)
        following.turn.set_result(None)
        self._tell()

    def _tell(self) -> None:
        for place, each in enumerate(self._line, 1):
            each.tell(place)
