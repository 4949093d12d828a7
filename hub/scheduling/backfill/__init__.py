"""Backfill: start requests that do not delay the requests ahead of them."""
