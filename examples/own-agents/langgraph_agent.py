"""An agent on LangGraph. The prompt is its argument, MCP_CONFIG lists its servers."""

import asyncio
import json
import os
import sys

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI


async def main(prompt):
    servers = json.load(open(os.environ["MCP_CONFIG"]))["mcpServers"]
    client = MultiServerMCPClient({
        name: {"transport": "stdio", "command": server["command"], "args": server["args"]}
        for name, server in servers.items()
    })
    tools = await client.get_tools()
    for tool in tools:
        # The model shall read the error of a tool.
        tool.handle_tool_error = True
    agent = create_agent(ChatOpenAI(model=os.environ.get("MODEL", "gpt-5")), tools)
    messages = (await agent.ainvoke({"messages": [("user", prompt)]}))["messages"]
    usages = [message.usage_metadata for message in messages if message.type == "ai"]
    print(json.dumps({"final": messages[-1].text,
                      "usage": {"input": sum(usage["input_tokens"] for usage in usages),
                                "output": sum(usage["output_tokens"] for usage in usages)}}))


asyncio.run(main(sys.argv[1]))
