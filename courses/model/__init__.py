"""The values of courses, and the protocols of their store and contents."""
