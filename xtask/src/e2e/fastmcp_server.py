"""A server on FastMCP for the end-to-end checks: pages, structured output, errors, the revision that is spoken."""

import sys
from dataclasses import dataclass

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError

# Seven tools, two per page: four pages, the last of them not full.
server = FastMCP("library", list_page_size=2)

SHELF = {"emma": 1815, "persuasion": 1817, "middlemarch": 1871}


@dataclass
class Book:
    title: str
    year: int


@server.tool
def find_book(title: str) -> Book:
    """Find a book on the shelf by its title."""
    year = SHELF.get(title.lower())
    if year is None:
        raise ToolError(f"There is no book called {title}.")
    return Book(title.lower(), year)


@server.tool
def list_years() -> list[int]:
    """List the years of all books on the shelf."""
    return sorted(SHELF.values())


@server.tool
def lend_book(title: str, days: int = 14) -> dict[str, int | str]:
    """Lend a book to a reader for some days."""
    return {"title": title, "days": days}


@server.tool
def burn_book(title: str) -> str:
    """Burn a book. It always breaks with an exception that is not meant for clients."""
    raise RuntimeError(f"the fire went out over {title}")


@server.tool(output_schema=None)
def describe_shelf() -> str:
    """Describe the shelf in words, without structured output."""
    return f"There are {len(SHELF)} books."


@server.tool(output_schema=None)
def speak_revision(context: Context) -> str:
    """Return the revision of the protocol that this request was made in."""
    return str(context.request_context.protocol_version)


@server.tool
def close_library(hour: int) -> str:
    """Close the library at an hour. It stands alone on the last page of the list."""
    return f"closed at {hour}"


if __name__ == "__main__":
    if len(sys.argv) > 3:
        secure = {"ssl_certfile": sys.argv[2], "ssl_keyfile": sys.argv[3]}
        server.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), uvicorn_config=secure, show_banner=False)
    elif len(sys.argv) > 1:
        server.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False)
    else:
        server.run(show_banner=False)
