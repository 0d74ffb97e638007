"""A session of the official Python SDK with a server: python sdk_client.py ERA PLAN.

PLAN is JSON: `server` is an address or a command with its arguments, `calls` are pairs of a tool and its arguments. ERA is how the SDK opens the session.
Prints what was negotiated, listed and answered, as JSON.
"""

import asyncio
import json
import sys

from mcp import Client, MCPError, StdioServerParameters


async def main(era, plan):
    server = plan["server"]
    if not isinstance(server, str):
        server = StdioServerParameters(command=server[0], args=server[1:])
    seen = {"tools": [], "answers": []}
    async with Client(server, mode=era) as client:
        seen["revision"] = client.protocol_version
        cursor = None
        while True:
            page = await client.list_tools(cursor=cursor)
            seen["tools"] += [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                break
        for name, arguments in plan["calls"]:
            try:
                result = await client.call_tool(name, arguments)
                answer = {"text": [block.text for block in result.content if block.type == "text"], "isError": bool(result.is_error)}
            except MCPError as error:
                answer = {"error": error.error.code}
            seen["answers"].append(answer)
    print(json.dumps(seen))


asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))
