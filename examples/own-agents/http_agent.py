"""A service with an agent on the OpenAI Agents SDK. A request has a message and its MCP servers."""

import asyncio
import contextlib
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from agents import Agent, Runner, set_default_openai_api, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp

set_tracing_disabled(True)
set_default_openai_api("chat_completions")


async def answer(message, servers):
    async with contextlib.AsyncExitStack() as stack:
        connected = [
            await stack.enter_async_context(MCPServerStreamableHttp(
                name=name, client_session_timeout_seconds=60, params={"url": server["url"]}))
            for name, server in servers.items()
        ]
        agent = Agent(name="agent", model=os.environ.get("MODEL", "gpt-5"), mcp_servers=connected)
        result = await Runner.run(agent, message)
    usage = result.context_wrapper.usage
    return {"answer": result.final_output,
            "usage": {"input": usage.input_tokens, "output": usage.output_tokens}}


class Chat(BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        try:
            work = answer(request["message"], request["mcp"]["mcpServers"])
            reply = asyncio.run_coroutine_threadsafe(work, LOOP).result()
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        body = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


# Requests come at the same time, and the client of the model belongs to one loop.
LOOP = asyncio.new_event_loop()
threading.Thread(target=LOOP.run_forever, daemon=True).start()
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Chat).serve_forever()
