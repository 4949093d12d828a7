"""Thresholds of Python's cyclic garbage collector.

It looks after every 700 objects that it keeps, and through all of them whenever a hundredth look
comes. A decision about ten thousand requests makes a hundred thousand objects, next to none of
them in cycles, beside the many that a service keeps: looking took up to a fifth of its time.
"""

from __future__ import annotations

import gc
from typing import Final

OBJECTS: Final = 50_000
"""Made and not yet gone, before the young ones are looked through: some megabytes."""
ROUNDS: Final = (20, 50)
"""Of the young before the middle ones, and of these before all."""


def look_rarely() -> None:
    """For this process, from now on. For what decides: the service, and the simulator."""
    gc.set_threshold(OBJECTS, *ROUNDS)
