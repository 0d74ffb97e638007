"""An agent on openai-agents with two MCP servers: PROMPT FILE.

MCP_CONFIG names a file with `mcpServers`. Writes `FILE.json`: the Responses items of the run.
"""

import asyncio
import contextlib
import json
import os
import sys

from agents import Agent, Runner, set_default_openai_api, set_tracing_disabled
from agents.mcp import MCPServerStdio


async def main(prompt, file):
    config = json.load(open(os.environ["MCP_CONFIG"]))["mcpServers"]
    set_tracing_disabled(True)
    set_default_openai_api("responses")
    async with contextlib.AsyncExitStack() as stack:
        servers = []
        for name, server in config.items():
            params = {"command": server["command"], "args": server["args"]}
            servers.append(await stack.enter_async_context(MCPServerStdio(
                name=name, params=params, client_session_timeout_seconds=60)))
        result = await Runner.run(Agent(name="a", model="gpt-5", mcp_servers=servers), prompt)
    with open(file + ".json", "w") as out:
        json.dump(result.to_input_list(), out)


asyncio.run(main(*sys.argv[1:]))
