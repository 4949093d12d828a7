"""Event streams and the change feed that they share."""
