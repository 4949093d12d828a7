"""The in-memory state of one running service: context, notifier, caches and metrics."""
