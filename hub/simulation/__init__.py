"""The simulator: real traces in, the scheduler's own functions, figures out.

It decides at events (a job comes, a job ends, an order changes by itself) and never on a tick:
on one real trace a tick of a minute makes the mean completion time up to 1.7 times as long.
"""

from __future__ import annotations
