"""How a call travels: connection, credentials, retries and event streams."""
