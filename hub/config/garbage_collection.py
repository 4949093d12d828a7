"""Thresholds of Python's cyclic garbage collector.

By default, CPython collects the youngest generation after 700 net allocations, and every hundredth
collection covers all objects. A scheduling cycle over ten thousand requests allocates a hundred
thousand objects, almost none of them in cycles, next to the many that the service keeps: collection
took up to a fifth of its time.
"""

from __future__ import annotations

import gc
from typing import Final

YOUNG_OBJECTS: Final = 50_000
"""Net allocations before the youngest generation is collected: some megabytes."""
YOUNGER_COLLECTIONS: Final = (20, 50)
"""Collections of the next younger generation before the middle and the oldest are collected."""


def raise_thresholds() -> None:
    """Collect less often in this process; for processes that schedule: service and simulator."""
    gc.set_threshold(YOUNG_OBJECTS, *YOUNGER_COLLECTIONS)
