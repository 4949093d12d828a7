"""The store in SQL: SQLite for one machine, written so that PostgreSQL can take its place."""

from .database import open_store
from .store import SqlStore

__all__ = ["SqlStore", "open_store"]
