"""Transitions of one request, as pure functions that ``Store.apply`` runs in a transaction."""
