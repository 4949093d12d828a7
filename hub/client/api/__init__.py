"""The calls of the client, by feature."""
