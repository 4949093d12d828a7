"""How a call travels: connection, credentials, retries, event streams."""
