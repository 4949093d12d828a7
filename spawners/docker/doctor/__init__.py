"""What carrel doctor finds out about an engine."""
