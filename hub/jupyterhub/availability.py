"""Remember whether JupyterHub answers, for all pages that request data from it."""

from __future__ import annotations

from math import inf
from typing import Final

from ..interfaces.clock import Instant, MonotonicClock, monotonic

PAGE_SECONDS: Final = 2.0
"""How long a page waits for JupyterHub before it shows the data it has."""
_RETRY_SECONDS: Final = 5.0


class HubAvailability:
    """Remembers the last failure, so that few calls wait for a hub that hangs.

    Attributes:
        away: the last call got no response.
    """

    def __init__(self, clock: MonotonicClock = monotonic) -> None:
        self._clock = clock
        self._failed_at = Instant(-inf)
        self.away = False

    @property
    def failed_lately(self) -> bool:
        """Whether a page should not call JupyterHub now."""
        return self.away and self._clock() - self._failed_at < _RETRY_SECONDS

    def failed(self) -> None:
        self._failed_at, self.away = self._clock(), True

    def answered(self) -> None:
        self.away = False
