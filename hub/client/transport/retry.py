"""Retry with exponential backoff while the service does not respond."""

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


def retry_after(response: httpx.Response) -> float | None:
    """Return the seconds to wait before the call is repeated; None unless the status is 429.

    A call with status 429 had no effect, whatever its method.
    """
    if response.status_code != httpx.codes.TOO_MANY_REQUESTS:
        return None
    try:
        seconds = float(response.headers.get("Retry-After", ""))
    except ValueError:  # missing, or a date, which the service never sends
        return _DEFAULT_SECONDS
    return max(seconds, _SHORTEST_SECONDS) if seconds < PATIENCE_SECONDS else PATIENCE_SECONDS


def pauses() -> Iterator[float]:
    """Yield pauses in seconds that double up to ``LONGEST_PAUSE_SECONDS``."""
    pause = FIRST_PAUSE_SECONDS
    while True:
        yield pause
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


@dataclass(slots=True, kw_only=True)
class RetryPolicy:
    """The retries of one caller.

    Attributes:
        seconds: how long to retry without any response.
    """

    seconds: float
    _failing_since: float | None = None
    _pauses: Iterator[float] = field(default_factory=pauses)

    def succeeded(self) -> None:
        """Record that the service responded."""
        self._failing_since, self._pauses = None, pauses()

    def failed(self, error: Unavailable, now: float) -> float:
        """Record that the service did not respond; return the pause before the next attempt.

        Raises:
            Unavailable: ``error``, if there was no response for ``seconds``.
        """
        if self._failing_since is None:
            self._failing_since = now
        if now - self._failing_since > self.seconds:
            raise error
        return self.pause()

    def pause(self) -> float:
        """Return the pause in seconds before the next attempt."""
        return next(self._pauses)
