"""Table definitions, and rows as values."""
