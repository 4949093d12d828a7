"""The policies that the simulator compares: Carrel's own and those of the literature."""

from __future__ import annotations

from .policy import Policy as Policy
