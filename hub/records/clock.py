"""The offset between the two clocks of the service, kept for its next life."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockOffset:
    """Epoch time minus monotonic time.

    Attributes:
        boot: identity of the boot of the machine; the monotonic clock begins anew with each.
        seconds: the difference.
    """

    boot: str
    seconds: float
