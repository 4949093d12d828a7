"""Migrations of the database, one module per revision in ``versions``; ``open_store`` applies them.

There are no downgrades: to go back, restore a backup from before.

Create a revision after a change of ``hub.store.sql.tables``:

    python -m carrel.hub.store.migrations "what it changes"
"""
