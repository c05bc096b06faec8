"""What agents call: tools over MCP, each call in a confined process of its own."""
