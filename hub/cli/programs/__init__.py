"""Commands for programs: their tokens, approvals, and the MCP server."""
