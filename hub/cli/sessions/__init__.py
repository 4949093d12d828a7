"""``carrel session`` and ``carrel quote``."""
