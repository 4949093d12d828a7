"""What the service asks of the world: the values that it keeps, the protocols that it calls."""

from __future__ import annotations
