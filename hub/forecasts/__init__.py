"""Predicted run times in the running service: the history from the store, and models in files."""
