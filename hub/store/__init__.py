"""Store requests, leases, quotas and the ledger in SQL; ``open_store`` opens a database."""

from .sql import SqlStore, open_store

__all__ = ["SqlStore", "open_store"]
