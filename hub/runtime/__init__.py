"""What one running service holds in memory: Context, notifier, caches, metrics."""
