"""The history of the tables, one file a step in ``versions``; ``open_store`` applies it.

Steps lead forward only; the way back is a copy of the database from before.

A new step, after a change of ``hub.store.tables``:

    python -m carrel.hub.store.migrations "what it changes"
"""
