"""REST calls of the client, one module per feature."""
