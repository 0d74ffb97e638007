"""An agent on LangGraph with langchain-mcp-adapters: PROMPT FILE.

MCP_CONFIG names a file with `mcpServers`. Writes the messages in three forms: `FILE.json` (as
`message_to_dict` writes them), `FILE.dumps.json` (LangChain's own serialization of the state) and
`FILE.dump.json` (`model_dump` of each message).
"""

import asyncio
import contextlib
import json
import os
import sys

from langchain.agents import create_agent
from langchain_core.load import dumps
from langchain_core.messages import messages_to_dict
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from langchain_openai import ChatOpenAI


async def main(prompt, file):
    servers = json.load(open(os.environ["MCP_CONFIG"]))["mcpServers"]
    client = MultiServerMCPClient({
        name: {"transport": "stdio", "command": server["command"], "args": server["args"]}
        for name, server in servers.items()
    })
    async with contextlib.AsyncExitStack() as stack:
        tools = []
        for name in servers:
            # One process per server; `get_tools` would start one for each call.
            session = await stack.enter_async_context(client.session(name))
            tools += await load_mcp_tools(session)
        for tool in tools:
            tool.handle_tool_error = True
        agent = create_agent(ChatOpenAI(model="gpt-5"), tools)
        state = await agent.ainvoke({"messages": [("user", prompt)]})
    with open(file + ".json", "w") as out:
        json.dump(messages_to_dict(state["messages"]), out)
    with open(file + ".dumps.json", "w") as out:
        out.write(dumps(state))
    with open(file + ".dump.json", "w") as out:
        json.dump({"messages": [json.loads(message.model_dump_json())
                                for message in state["messages"]]}, out)


asyncio.run(main(*sys.argv[1:]))
