"""The MCP server of ``carrel mcp``: tools and resources of a site, with the token of a program.

It needs the extra ``mcp``. The service enforces every limit; this server only bounds what it sends.
"""
