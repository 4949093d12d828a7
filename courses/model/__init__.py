"""The values of courses, and the protocol of their store."""
