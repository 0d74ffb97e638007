"""A server on the official Python SDK for the end-to-end checks: all of the protocol but tools for their own sake.

The same tools ask their client in both eras: by requests of the server, and by results that require input.
"""

import sys
from typing import Annotated

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp_types import Completion, CreateMessageResult, ListRootsResult, SamplingMessage, TextContent
from pydantic import BaseModel

server = MCPServer("library")
STATELESS = "2026-07-28"
AUTHORS = ["austen", "bronte", "eliot"]
shelf = ["Emma"]


@server.resource("library://shelf", mime_type="text/plain")
def read_shelf() -> str:
    """The books that are on the shelf."""
    return "\n".join(shelf)


@server.resource("library://cover", mime_type="image/png")
def read_cover() -> bytes:
    """A picture."""
    return b"\x89PNG\r\n"


@server.resource("library://books/{author}/{title}", mime_type="text/plain")
def read_book(author: str, title: str) -> str:
    """A book by its author and title."""
    return f"{title}, by {author}"


@server.prompt()
def review(title: str, tone: str = "kind") -> str:
    """Ask for a review of a book."""
    return f"Write a {tone} review of {title}."


@server.completion()
async def complete(ref, argument, context):
    if argument.name == "author":
        return Completion(values=[name for name in AUTHORS if name.startswith(argument.value)])
    if argument.name == "title" and context and context.arguments:
        return Completion(values=[f"A book of {context.arguments['author']}"])
    if argument.name == "tone":
        return Completion(values=["formal", "funny"], total=2, has_more=False)
    return None


class Loan(BaseModel):
    days: int = 14
    name: str


def ask_loan(title: str) -> Elicit[Loan]:
    return Elicit(f"For how long do you want {title}?", Loan)


@server.tool()
def lend_book(title: str, loan: Annotated[ElicitationResult[Loan], Resolve(ask_loan)]) -> str:
    """Lend a book to the reader."""
    if isinstance(loan, AcceptedElicitation):
        return f"{title} is lent to {loan.data.name} for {loan.data.days} days."
    return f"{title} is not lent."


def ask_summary(title: str) -> Sample:
    message = SamplingMessage(role="user", content=TextContent(text=f"Summarise {title}."))
    return Sample([message], max_tokens=100, system_prompt="You are a librarian.")


@server.tool()
def summarise_book(title: str, summary: Annotated[CreateMessageResult, Resolve(ask_summary)]) -> str:
    """Summarise a book by the client's model."""
    return f"{summary.model}: {summary.content.text}"


def ask_roots() -> ListRoots:
    return ListRoots()


@server.tool()
def list_folders(roots: Annotated[ListRootsResult, Resolve(ask_roots)]) -> str:
    """List the folders of the client."""
    return "\n".join(str(root.uri) for root in roots.roots)


@server.tool()
def lend_summarised(
    title: str,
    summary: Annotated[CreateMessageResult, Resolve(ask_summary)],
    loan: Annotated[Loan, Resolve(ask_loan)],
) -> str:
    """Lend a book with a summary: two questions in one call."""
    return f"{summary.content.text} ({loan.days} days)"


@server.tool()
async def take_inventory(context: Context) -> str:
    """Count the books, with progress and log messages."""
    await context.log("debug", "counting", logger_name="inventory")
    for number in range(1, 4):
        await context.report_progress(number, 3, f"shelf {number}")
    await context.log("warning", {"missing": "Persuasion"}, logger_name="inventory")
    return "3 shelves"


@server.tool()
async def return_book(title: str, context: Context) -> str:
    """Put a book on the shelf."""
    shelf.append(title)
    if context.protocol_version == STATELESS:
        await context.notify_resource_updated("library://shelf")
    else:
        await context.session.send_resource_updated("library://shelf")
    return f"{title} is on the shelf."


def burn_book(title: str) -> str:
    return f"{title} is not burnt."


@server.tool()
async def open_cellar(context: Context) -> str:
    """Reveal another tool."""
    server.add_tool(burn_book)
    if context.protocol_version == STATELESS:
        await context.notify_tools_changed()
    else:
        await context.session.send_tool_list_changed()
    return "open"


@server.tool()
async def read_for_ever(context: Context) -> str:
    """Report progress until the call is cancelled."""
    import anyio

    number = 0
    while True:
        number += 1
        await context.report_progress(number)
        await anyio.sleep(0.02)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run()
