"""Spans of an agent with MCP servers, as OTLP JSON: PROMPT FILE pydantic|openai.

MCP_CONFIG names a file with `mcpServers`. `pydantic`: Pydantic AI, which instruments itself, with
FastMCP clients, which do too. `openai`: a loop over the OpenAI SDK with the official
instrumentation and FastMCP clients; arguments are recorded by the spans of the model only.
Writes `FILE.jsonl`.
"""

import asyncio
import contextlib
import json
import os
import sys

os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from opentelemetry import trace
from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor


def clients(config):
    return {name: Client(StdioTransport(command=server["command"], args=server["args"]), name=name)
            for name, server in config.items()}


async def pydantic(prompt, config):
    from pydantic_ai import Agent
    from pydantic_ai.mcp import MCPToolset

    toolsets = [MCPToolset(client, id=name) for name, client in clients(config).items()]
    agent = Agent("openai-chat:gpt-5", toolsets=toolsets)
    Agent.instrument_all()
    async with agent:
        await agent.run(prompt)


async def openai(prompt, config):
    from openai import AsyncOpenAI
    from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor

    OpenAIInstrumentor().instrument()
    model, messages = AsyncOpenAI(), [{"role": "user", "content": prompt}]
    async with contextlib.AsyncExitStack() as stack:
        tools, owners = [], {}
        for client in clients(config).values():
            await stack.enter_async_context(client)
            for tool in await client.list_tools():
                owners[tool.name] = client
                tools.append({"type": "function", "function": {
                    "name": tool.name, "description": tool.description,
                    "parameters": getattr(tool, "input_schema", None) or tool.inputSchema}})
        while True:
            answer = await model.chat.completions.create(
                model="gpt-5", messages=messages, tools=tools)
            message = answer.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                break
            for call in message.tool_calls:
                result = await owners[call.function.name].call_tool(
                    call.function.name, json.loads(call.function.arguments), raise_on_error=False)
                text = "".join(getattr(block, "text", "") for block in result.content)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": text})


def main(prompt, file, which):
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter(file + ".jsonl")))
    trace.set_tracer_provider(provider)
    config = json.load(open(os.environ["MCP_CONFIG"]))["mcpServers"]

    async def traced():
        with trace.get_tracer("agent").start_as_current_span("agent"):
            await {"pydantic": pydantic, "openai": openai}[which](prompt, config)

    asyncio.run(traced())
    provider.shutdown()


main(*sys.argv[1:])
