"""The REST API of ngshare, for nbgrader's stock exchange client."""
