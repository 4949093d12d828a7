"""The simulator: replay traces through the scheduler core, and compare policies.

It decides at events (a job is submitted or ends, an order changes with time) instead of fixed
ticks: on one real trace a tick of a minute makes the mean completion time up to 1.7 times as long.
"""

from __future__ import annotations
