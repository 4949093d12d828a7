"""Alembic environment: runs migrations on the connection and in the transaction of the caller."""

from __future__ import annotations

from alembic import context

attributes = context.config.attributes
context.configure(
    connection=attributes["connection"],
    target_metadata=attributes["metadata"],
    # SQLite cannot alter most columns: Alembic copies the table.
    render_as_batch=True,
    compare_server_default=True,
)
with context.begin_transaction():
    context.run_migrations()
