"""Budgets of HTTP calls by user: a token bucket each, paid in processor time.

A bucket holds ten seconds of calls and is refilled at a constant rate. A call takes one token, and
more if it uses more than 10 ms of the service's processor time: the bucket may then be in debt. So
one user cannot take more than a fixed part of the processor from the others, by many small calls or
by few large ones. Calls that arrive together are worked on a few at a time.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Self

from ...config.settings import Settings
from ...interfaces.clock import Instant, MonotonicClock, monotonic

CALL_SECONDS = 0.01
"""Processor time that one token pays for."""
BURST_SECONDS = 10.0
"""For how long at the constant rate a full bucket lasts."""
_ADDRESS_FACTOR = 5.0
"""A whole class may share one address, and signs in at the same time."""
_LARGEST_COST = 50.0
"""The most tokens of one call: a transfer to a slow client also pays a part of what others use."""
_REMEMBERED = 10_000
AT_ONCE = 2
"""How many calls of one user the service works on at the same time."""
LONGEST_WAIT_SECONDS = 1.0
PROGRAM = "program "
"""The accounts of programs begin with this: each has a budget of its own."""
_PROGRAM_FACTOR = 0.5
ADDRESS = "address "
"""The accounts of callers who are not signed in begin with this."""


@dataclass(slots=True)
class TokenBucket:
    """The tokens of one account at one time."""

    tokens: float
    at: Instant

    def refill(self, rate: float, now: Instant) -> None:
        self.tokens = min(rate * BURST_SECONDS, self.tokens + rate * (now - self.at))
        self.at = now


@dataclass(slots=True)
class CallBudgets:
    """The buckets of all accounts. Used in the event loop only.

    Attributes:
        rate: tokens per second and user; 0 for no limit.
    """

    rate: float
    clock: MonotonicClock = monotonic
    _buckets: OrderedDict[str, TokenBucket] = field(default_factory=OrderedDict)

    @classmethod
    def of(cls, settings: Settings) -> Self:
        return cls(settings.calls_per_second)

    def admit(self, account: str) -> float:
        """Take a token; return 0, or the seconds until there is one, if there is none now."""
        if self.rate <= 0:
            return 0.0
        bucket, rate = self._bucket(account)
        if bucket.tokens < 1:
            return (1 - bucket.tokens) / rate
        bucket.tokens -= 1
        return 0.0

    def charge(self, account: str, seconds: float) -> None:
        """Charge processor time of an admitted call, beyond what its token has paid."""
        cost = min(seconds / CALL_SECONDS, _LARGEST_COST)
        if self.rate > 0 and cost > 1:
            self._bucket(account)[0].tokens -= cost - 1

    def _bucket(self, account: str) -> tuple[TokenBucket, float]:
        now = self.clock()
        rate = self.rate * _factor(account)
        bucket = self._buckets.setdefault(account, TokenBucket(rate * BURST_SECONDS, now))
        bucket.refill(rate, now)
        self._buckets.move_to_end(account)
        while len(self._buckets) > _REMEMBERED:
            self._buckets.popitem(last=False)
        return bucket, rate


@dataclass(slots=True)
class _Queue:
    slots: asyncio.Semaphore
    calls: int = 0


class CallQueues:
    """Work on a few calls of every account at a time, so that a burst leaves others their share.

    A call waits a second at most: slow uploads, and calls that wait for other services, do not
    block the pages of their user. Used in the event loop only.
    """

    def __init__(self, *, at_once: int = AT_ONCE, longest: float = LONGEST_WAIT_SECONDS) -> None:
        self._at_once = at_once
        self._longest = longest
        self._queues: dict[str, _Queue] = {}

    @asynccontextmanager
    async def turn(self, account: str) -> AsyncIterator[Callable[[], None]]:
        """Wait for a turn; it ends with the context, or when the returned function is called."""
        factor = int(_ADDRESS_FACTOR) if account.startswith(ADDRESS) else 1
        queue = self._queues.setdefault(account, _Queue(asyncio.Semaphore(factor * self._at_once)))
        queue.calls += 1
        held = False

        def end() -> None:
            nonlocal held
            if held:
                held = False
                queue.slots.release()

        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._longest):
                    held = await queue.slots.acquire()
            yield end
        finally:
            end()
            queue.calls -= 1
            if not queue.calls:
                del self._queues[account]


class ProcessorShares:
    """Divides the processor time of this process equally among the calls in progress.

    Which thread works for which call is not known. A call that takes long is in progress while the
    time is used, and so it pays for most of it.
    """

    def __init__(self, clock: Callable[[], float] = time.process_time) -> None:
        self._clock = clock
        self._used = clock()
        self._calls = 0
        self._share = 0.0
        """What a call would have paid that was in progress all the time."""

    def begin(self) -> float:
        """Count a call; return the value that ``end`` needs."""
        self._advance()
        self._calls += 1
        return self._share

    def end(self, begun: float) -> float:
        """Return the seconds of processor time that the call has to pay."""
        self._advance()
        self._calls -= 1
        return self._share - begun

    def _advance(self) -> None:
        used = self._clock()
        if self._calls:
            self._share += (used - self._used) / self._calls
        self._used = used


def _factor(account: str) -> float:
    """Return the rate of an account, compared with that of a user."""
    if account.startswith(ADDRESS):
        return _ADDRESS_FACTOR
    return _PROGRAM_FACTOR if account.startswith(PROGRAM) else 1.0


def retry_after(seconds: float) -> int:
    """Return whole seconds, as the header ``Retry-After`` has them."""
    return max(1, math.ceil(seconds))
