"""What the service remembers: ``open_store`` for real, ``MemoryStore`` for tests."""

from .memory import MemoryStore
from .sql import SqlStore, open_store

__all__ = ["MemoryStore", "SqlStore", "open_store"]
