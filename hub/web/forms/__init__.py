"""Forms as they were filled in, and what was wrong with them."""
