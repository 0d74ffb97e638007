"""An echo server on FastMCP."""

from fastmcp import FastMCP

server = FastMCP("echo")


@server.tool(output_schema=None)
def echo(message: str) -> str:
    """Says the message back."""
    return message


server.run(show_banner=False)
