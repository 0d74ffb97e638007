"""An agent on the Claude Agent SDK. The prompt is its argument, MCP_CONFIG lists its servers."""

import asyncio
import json
import os
import sys

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query


async def main(prompt):
    servers = json.load(open(os.environ["MCP_CONFIG"]))["mcpServers"]
    options = ClaudeAgentOptions(
        model=os.environ.get("MODEL", "claude-sonnet-4-5"),
        mcp_servers={name: {"type": "stdio", "command": server["command"], "args": server["args"]}
                     for name, server in servers.items()},
        allowed_tools=[f"mcp__{name}" for name in servers],
        setting_sources=[],
    )
    async for message in query(prompt=prompt, options=options):
        if isinstance(message, ResultMessage):
            usage = message.usage or {}
            cached = usage.get("cache_read_input_tokens", 0)
            written = usage.get("cache_creation_input_tokens", 0)
            print(json.dumps({
                "final": message.result, "cost": message.total_cost_usd,
                "error": message.result if message.is_error else None,
                "usage": {"input": usage.get("input_tokens", 0) + cached + written,
                          "output": usage.get("output_tokens", 0)}}))


asyncio.run(main(sys.argv[1]))
