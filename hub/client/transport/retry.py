"""How long a client bears a service that is away, and in which pauses it asks again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ...errors import Unavailable

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 2.0


def pauses() -> Iterator[float]:
    """Doubling, up to the longest."""
    pause = FIRST_PAUSE_SECONDS
    while True:
        yield pause
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


@dataclass(slots=True, kw_only=True)
class RetryPolicy:
    """Of one caller, who tells it what happened and when.

    Attributes:
        seconds: how long the service may stay away at a stretch.
    """

    seconds: float
    _away_since: float | None = None
    _pauses: Iterator[float] = field(default_factory=pauses)

    def well(self) -> None:
        """It answered."""
        self._away_since, self._pauses = None, pauses()

    def lost(self, error: Unavailable, now: float) -> float:
        """It did not answer: how long to wait before it is asked again.

        Raises:
            Unavailable: ``error``, where it has been away for too long.
        """
        if self._away_since is None:
            self._away_since = now
        if now - self._away_since > self.seconds:
            raise error
        return self.pause()

    def pause(self) -> float:
        return next(self._pauses)
