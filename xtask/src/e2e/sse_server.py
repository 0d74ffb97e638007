"""A server of the official Python SDK over HTTP+SSE, the transport of revision 2024-11-05: python sse_server.py PORT."""

import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("library")


@server.tool()
def find_book(title: str) -> str:
    """Finds a book by its title."""
    return {"Emma": "1815"}.get(title, "unknown")


server.run("sse", host="127.0.0.1", port=int(sys.argv[1]))
