"""A store that forgets when the process ends: for tests, for the simulator, for a first look.

It passes the same contract suite as the SQL store and takes every decision from the same
``moves`` and ``pool``; what is written here is only how things are remembered. One lock makes
every method a transaction, and nothing is changed before everything was checked.
"""

from .store import MemoryStore

__all__ = ["MemoryStore"]
