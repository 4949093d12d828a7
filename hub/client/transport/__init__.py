"""HTTP transport of the client: connection, credentials, retries and event streams."""
