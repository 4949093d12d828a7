"""Bodies of notifications: channels, the events of each, and test messages."""
