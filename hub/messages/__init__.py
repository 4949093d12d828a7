"""Sentences that people read, worded once for pages, terminal, widgets and API."""
