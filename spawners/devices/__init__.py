"""Which devices a machine has, how they are, and what a lease on them puts into an environment."""

from __future__ import annotations
