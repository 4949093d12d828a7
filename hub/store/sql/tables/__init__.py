"""Table definitions, and conversions between rows and values."""
