"""The ways in: a command line, an MCP server, and what hosts tell about themselves."""
