"""An agent on the OpenAI Agents SDK. The prompt is its argument, MCP_CONFIG lists its servers."""

import asyncio
import contextlib
import json
import os
import sys

from agents import Agent, Runner, set_default_openai_api, set_tracing_disabled
from agents.mcp import MCPServerStdio

set_tracing_disabled(True)
set_default_openai_api("chat_completions")


async def main(prompt):
    servers = json.load(open(os.environ["MCP_CONFIG"]))["mcpServers"]
    async with contextlib.AsyncExitStack() as stack:
        connected = [
            await stack.enter_async_context(MCPServerStdio(
                name=name, client_session_timeout_seconds=60,
                params={"command": server["command"], "args": server["args"]}))
            for name, server in servers.items()
        ]
        agent = Agent(name="agent", model=os.environ.get("MODEL", "gpt-5"), mcp_servers=connected)
        result = await Runner.run(agent, prompt)
    usage = result.context_wrapper.usage
    print(json.dumps({"final": result.final_output,
                      "usage": {"input": usage.input_tokens, "output": usage.output_tokens}}))


asyncio.run(main(sys.argv[1]))
