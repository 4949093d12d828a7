"""Charge leases in device-seconds, and decay past charges for fair share.

A share is charged for the part of the device that counts against a quota (``tree.size``): its
compute, in thousandths.
"""

from __future__ import annotations

from math import exp, log
from typing import Protocol

from ..model.snapshot import Share
from .tree import THOUSAND, size


def device_seconds(
    devices: int, starts_at: float, ends_at: float, *, share: Share | None = None
) -> float:
    """Return the cost of devices, or a share of one, over an interval; 0 if the clock went back."""
    return size(devices, share) / THOUSAND * max(0.0, ends_at - starts_at)


HALF_LIFE = 7 * 86400.0
"""Default half-life of past use."""


class ChargeInterval(Protocol):
    """A charge: an entry of the ledger, or an interval that is not written yet."""

    @property
    def device_seconds(self) -> float: ...

    @property
    def starts_at(self) -> float: ...

    @property
    def ends_at(self) -> float: ...


def decayed(charge: ChargeInterval, at: float, half_life: float) -> float:
    """Return the device-seconds that a charge still counts for at a later time.

    An instant counts 2^(-age / half-life), so that the charge counts for the integral of that over
    its interval, times its devices:

        devices · H/ln 2 · (2^(-(at - ends_at)/H) - 2^(-(at - starts_at)/H))

    A charge split in two counts as much as the whole, and a credit cancels what its charges still
    count for.
    """
    per_second = log(2) / half_life
    devices = charge.device_seconds / (charge.ends_at - charge.starts_at)
    newest = exp((charge.ends_at - at) * per_second)
    oldest = exp((charge.starts_at - at) * per_second)
    return devices / per_second * (newest - oldest)
