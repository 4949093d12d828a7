"""Create, list, clone and archive courses; their folders in sessions."""
