"""What one running service holds in memory: context, notifier, caches and metrics."""
