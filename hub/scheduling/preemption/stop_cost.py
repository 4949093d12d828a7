"""What it costs to stop something that runs."""

from __future__ import annotations

from ..model.snapshot import Allocation
from ..queue.running_set import expected_end

DELAY = 3600.0
"""Seconds of work on each of its devices that stopping what is about to end counts for."""
LONG = 86400.0
"""Device-seconds: what has so much to go counts for half of that."""


def cost(holding: Allocation, now: float) -> float:
    """What it costs to stop it, in device-seconds: the work that is lost, and the delay.

    The delay counts for up to an hour of work on each device: less, the more device-seconds are
    expected to be left to do. Of those that lose the same, whoever has the most left is asked
    first: last in line for devices of their own (``queues.entry``), these wait the longest
    anyway, while what is nearly done would be delayed out of proportion and gives its devices
    back soon. (The argument is that of Smith, "Various optimizers for single-stage production",
    1956: in each exchange of two for the same devices, the mean is shorter where the shorter one
    goes on.)
    """
    devices = part(holding)
    left = devices * (expected_end(holding, now) - now)
    return lost(holding, now) + devices * DELAY * LONG / (LONG + left)


def lost(holding: Allocation, now: float) -> float:
    """Device-seconds of work that would be done again, were it stopped now."""
    if holding.restart_cost is not None:
        return part(holding) * holding.restart_cost
    since = holding.since if holding.saved_at is None else holding.saved_at
    return part(holding) * max(0.0, now - since)


def part(holding: Allocation) -> float:
    """How many devices it holds; of one that is shared, its part."""
    return len(holding.devices) if holding.share is None else holding.share.compute
