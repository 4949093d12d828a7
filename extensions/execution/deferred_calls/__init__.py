"""Record tensor computations of many nodes, and execute equal ones as one batch."""

from .call_recorder import NotBatchable, Recursion, UsesCaller, recorded_modules

__all__ = ["NotBatchable", "Recursion", "UsesCaller", "recorded_modules"]
