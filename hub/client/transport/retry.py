"""How long and how often a client retries while the service is away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import httpx

from ...errors import Unavailable

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 2.0

PATIENCE_SECONDS = 300.0
"""How long a call waits for its turn, all refusals together."""
_DEFAULT_SECONDS = 1.0
_SHORTEST_SECONDS = 0.1


def retry_after(answer: httpx.Response) -> float | None:
    """Return how long the service asks to wait; None unless it refused one call too many.

    Such a call has had no effect, whatever its method.
    """
    if answer.status_code != httpx.codes.TOO_MANY_REQUESTS:
        return None
    try:
        seconds = float(answer.headers.get("Retry-After", ""))
    except ValueError:  # a date, which our service never sends, or nothing
        return _DEFAULT_SECONDS
    return max(seconds, _SHORTEST_SECONDS) if seconds < PATIENCE_SECONDS else PATIENCE_SECONDS


def pauses() -> Iterator[float]:
    """Doubles, up to the longest pause."""
    pause = FIRST_PAUSE_SECONDS
    while True:
        yield pause
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


@dataclass(slots=True, kw_only=True)
class RetryPolicy:
    """The retries of one caller.

    Attributes:
        seconds: how long the service may be away at a time.
    """

    seconds: float
    _away_since: float | None = None
    _pauses: Iterator[float] = field(default_factory=pauses)

    def well(self) -> None:
        """Note that the service responded."""
        self._away_since, self._pauses = None, pauses()

    def lost(self, error: Unavailable, now: float) -> float:
        """Note that the service did not respond; return the pause before the next attempt.

        Raises:
            Unavailable: ``error``, if it has been away for too long.
        """
        if self._away_since is None:
            self._away_since = now
        if now - self._away_since > self.seconds:
            raise error
        return self.pause()

    def pause(self) -> float:
        return next(self._pauses)
