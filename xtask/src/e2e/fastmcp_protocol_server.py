"""A server on FastMCP for the end-to-end checks: resources, prompts, completion, questions to the client, messages."""

import sys

from fastmcp import Context, FastMCP
from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
)

# Three resources, one per page.
server = FastMCP("archive", list_page_size=1)
SCHEMA = {"type": "object", "properties": {"reason": {"type": "string", "default": "research"}}}


@server.resource("archive://rules", mime_type="text/markdown")
def rules() -> str:
    """The rules of the archive."""
    return "# Rules\n\nNo pens."


@server.resource("archive://map", mime_type="application/json")
def plan() -> dict:
    """The rooms of the archive."""
    return {"rooms": 3}


@server.resource("archive://seal", mime_type="image/png")
def seal() -> bytes:
    """The seal of the archive."""
    return b"\x89PNG\r\n"


@server.resource("archive://letters/{writer}{?year}")
def letters(writer: str, year: int = 1800) -> str:
    """The letters of a writer."""
    return f"{writer} in {year}"


@server.prompt
def transcribe(letter: str, language: str = "English") -> str:
    """Ask for a transcription."""
    return f"Transcribe {letter} into {language}."


@server.completion
def complete(ref, argument, context):
    if argument.name == "writer":
        return [name for name in ("ada", "alan", "grace") if name.startswith(argument.value)]
    return None


@server.tool
async def digitise(pages: int, context: Context) -> str:
    """Digitise pages, with progress and log messages."""
    await context.info("starting", logger_name="scanner")
    for page in range(1, pages + 1):
        await context.report_progress(page, pages)
    await context.warning("the lamp is old", logger_name="scanner")
    return f"{pages} pages"


@server.tool(output_schema=None)
async def ask_reader(context: Context) -> str | InputRequiredResult:
    """Ask the reader for a reason, in the way of the revision that is spoken."""
    if str(context.request_context.protocol_version) != "2026-07-28":
        answer = await context.elicit("Why do you want this?", str)
        return f"{answer.action}: {getattr(answer, 'data', None)}"
    if context.input_responses is None:
        question = ElicitRequest(
            params=ElicitRequestFormParams(message="Why do you want this?", requested_schema=SCHEMA)
        )
        return InputRequiredResult(input_requests={"reason": question}, request_state="asked")
    answer = context.input_responses["reason"]
    return f"{answer.action}: {(answer.content or {}).get('reason')} ({context.request_state})"


@server.tool(output_schema=None)
async def ask_twice(context: Context) -> str | InputRequiredResult:
    """Two rounds of questions: to the client's model, then for its roots. Only in revision 2026-07-28."""
    given = context.input_responses or {}
    if "summary" in given:
        text = given["summary"].content.text
        return InputRequiredResult(input_requests={"roots": ListRootsRequest()}, request_state=text)
    if "roots" in given:
        return f"{context.request_state} in {given['roots'].roots[0].uri}"
    message = SamplingMessage(role="user", content=TextContent(text="Summarise the archive."))
    params = CreateMessageRequestParams(messages=[message], max_tokens=50)
    return InputRequiredResult(input_requests={"summary": CreateMessageRequest(params=params)})


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False)
    else:
        server.run(show_banner=False)
