"""What both stores share, as values: transitions of a request, checks, conversions."""
