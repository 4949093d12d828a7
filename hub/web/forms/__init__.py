"""HTML forms: typed fields, what was filled in, and what was wrong with it."""
