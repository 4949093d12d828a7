"""The SQL store: SQLite for one machine, compatible with PostgreSQL."""

from .database import open_store
from .store import SqlStore

__all__ = ["SqlStore", "open_store"]
