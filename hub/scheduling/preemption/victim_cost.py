"""Cost of preempting a victim: the work that is lost, and the delay."""

from __future__ import annotations

from ..model.snapshot import Allocation
from ..queue.running_set import expected_end

DELAY_SECONDS = 3600.0
"""Cost of delaying work that is about to end, in seconds on each of its devices."""


LONG = 86400.0
"""Remaining work in device-seconds at which the delay costs half of ``DELAY_SECONDS``."""


def cost(allocation: Allocation, now: float) -> float:
    """Return the cost of a preemption in device-seconds: lost work, and delay.

    The delay counts for up to an hour on each device, less if many device-seconds remain. Among
    allocations that lose the same, the one with the most remaining work is preempted first: it is
    last in the queue of its owner (``queues.entry``) and waits the longest anyway, while a nearly
    finished one would be delayed out of proportion and frees its devices soon. (Smith, "Various
    optimizers for single-stage production", 1956: of two jobs on the same devices, the mean
    completion time is lower if the shorter one runs first.)
    """
    devices = part(allocation)
    left = devices * (expected_end(allocation, now) - now)
    return lost(allocation, now) + devices * DELAY_SECONDS * LONG / (LONG + left)


def lost(allocation: Allocation, now: float) -> float:
    """Return the device-seconds of work that would be repeated if it were stopped now."""
    if allocation.restart_cost is not None:
        return part(allocation) * allocation.restart_cost
    since = allocation.since if allocation.saved_at is None else allocation.saved_at
    return part(allocation) * max(0.0, now - since)


def part(allocation: Allocation) -> float:
    """Return the number of devices that it holds; of a shared device, its share of compute."""
    return len(allocation.devices) if allocation.share is None else allocation.share.compute
