"""How long a job is thought to run: as long as the last ones like it did.

The live service and the simulator ask the same function. What is alike differs: a live job has a
notebook or a program with a name, a line of a trace only its user, tenant and size.
"""

from __future__ import annotations

from collections.abc import Collection
from statistics import fmean

COUNTED = 2
"""How many of the newest are looked at."""


def likely_seconds(newest: Collection[float]) -> float:
    """The mean of the newest one or two that ended like it.

    Tsafrir, Etsion and Feitelson, "Backfilling using system-generated predictions rather than
    user runtime estimates", IEEE TPDS 18(6), 2007: the last two jobs of a user predict about as
    well as anything that looks further back.
    """
    return fmean(newest)
