"""Makes the fixtures of OpenInference and LangSmith, offline.

    pip install openai openinference-instrumentation-openai opentelemetry-sdk \
        opentelemetry-exporter-otlp-proto-common langchain-core langsmith
    python spans.py FIXTURES

OpenInference's instrumentation of the `openai` package records requests to a stand-in on the
loopback interface and makes a TOOL span for each tool. LangSmith's runs are those that LangChain's
tracer makes of a fake chat model and of real tools, serialised by `langsmith.schemas.Run`.
"""

import base64
import json
import pathlib
import sys
import threading
from http.server import HTTPServer

sys.argv, FIXTURES = sys.argv[:1] + [sys.argv[1]], pathlib.Path(sys.argv[1])
import sdks  # noqa: E402  the stand-in and the tools


def openinference(base):
    import openai
    from google.protobuf.json_format import MessageToDict
    from openinference.instrumentation import TracerProvider
    from openinference.instrumentation.openai import OpenAIInstrumentor
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    OpenAIInstrumentor().instrument(tracer_provider=provider)
    tracer = provider.get_tracer("fixture")

    @tracer.tool
    def get_weather(city: str) -> dict:
        """Weather of a city"""
        return {"city": city, "sky": "sunny"}

    @tracer.tool
    def get_time(city: str) -> dict:
        """Local time of a city"""
        raise ValueError("no clock for " + city)

    tools = {"get_weather": get_weather, "get_time": get_time}

    @tracer.agent
    def agent(prompt: str) -> str:
        client = openai.OpenAI(base_url=base + "/v1", api_key="none")
        messages = [{"role": "user", "content": prompt}]
        while True:
            answer = client.chat.completions.create(
                model="gpt-4.1", messages=messages,
                tools=[{"type": "function", "function": {
                    "name": n, "description": d, "parameters": sdks.SCHEMA,
                }} for n, d in sdks.TOOLS.items()],
            )
            message = answer.choices[0].message
            if not message.tool_calls:
                return message.content
            messages.append(message.to_dict())
            for one in message.tool_calls:
                try:
                    text = json.dumps(tools[one.function.name](**json.loads(one.function.arguments)))
                except ValueError as error:
                    text = f"Error: {error}"
                messages.append({"role": "tool", "tool_call_id": one.id, "content": text})

    def completion(number, message, reason):
        return {
            "id": f"chatcmpl-{number}", "object": "chat.completion", "created": 1763400000,
            "model": "gpt-4.1-2025-04-14",
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": {
                "prompt_tokens": 100 * number, "completion_tokens": 20,
                "total_tokens": 100 * number + 20,
                "prompt_tokens_details": {"cached_tokens": 64 * (number - 1)},
                "completion_tokens_details": {"reasoning_tokens": 8},
            },
        }

    def call(id, name):
        return {"id": id, "type": "function",
                "function": {"name": name, "arguments": '{"city":"Rome"}'}}

    sdks.prepare([
        completion(1, {"role": "assistant", "content": None, "tool_calls": [
            call("call_w", "get_weather"), call("call_t", "get_time")]}, "tool_calls"),
        completion(2, {"role": "assistant", "content": sdks.FINAL}, "stop"),
    ])
    agent(sdks.PROMPT)
    exported = MessageToDict(encode_spans(exporter.get_finished_spans()))
    for resource in exported["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                # OTLP JSON has ids in hexadecimal, and protobuf's JSON has base64.
                for key in ("traceId", "spanId", "parentSpanId"):
                    if key in span:
                        span[key] = base64.b64decode(span[key]).hex()
                # Stack traces have paths of the machine.
                for event in span.get("events", []):
                    event["attributes"] = [
                        one for one in event["attributes"] if one["key"] != "exception.stacktrace"
                    ]
    sdks.write("openinference/otlp.json", exported)


def langsmith():
    import datetime

    from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
    from langchain_core.messages import AIMessage, HumanMessage
    from langchain_core.runnables import RunnableLambda
    from langchain_core.tools import tool
    from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
    from langsmith.schemas import Run

    @tool
    def get_weather(city: str) -> dict:
        """Weather of a city"""
        return {"city": city, "sky": "sunny"}

    @tool
    def get_time(city: str) -> str:
        """Local time of a city"""
        raise ValueError("no clock for " + city)

    tools = {"get_weather": get_weather, "get_time": get_time}

    def usage(number):
        return {"input_tokens": 100 * number, "output_tokens": 20,
                "total_tokens": 100 * number + 20}

    model = FakeMessagesListChatModel(responses=[
        AIMessage(content="", usage_metadata=usage(1), tool_calls=[
            {"id": "call_w", "name": "get_weather", "args": {"city": "Rome"}},
            {"id": "call_t", "name": "get_time", "args": {"city": "Rome"}},
        ]),
        AIMessage(content=sdks.FINAL, usage_metadata=usage(2)),
    ])

    def agent(prompt):
        messages = [HumanMessage(prompt)]
        while True:
            answer = model.invoke(messages)
            messages.append(answer)
            if not answer.tool_calls:
                return {"output": answer.content}
            for one in answer.tool_calls:
                try:
                    messages.append(tools[one["name"]].invoke({**one, "type": "tool_call"}))
                except ValueError as error:
                    messages.append({"role": "tool", "tool_call_id": one["id"],
                                     "content": f"Error: {error}"})

    collector = RunCollectorCallbackHandler()
    RunnableLambda(agent).with_config(run_name="agent").invoke(
        sdks.PROMPT, config={"callbacks": [collector]}
    )

    def flat(run):
        yield run
        for child in run.child_runs:
            yield from flat(child)

    rows = []
    for run in flat(collector.traced_runs[0]):
        row = Run(
            id=run.id, name=run.name, run_type=run.run_type, start_time=run.start_time,
            end_time=run.end_time, inputs=run.inputs, outputs=run.outputs, extra=run.extra,
            error=run.error and run.error.split("\n")[0].split("Traceback")[0],
            parent_run_id=run.parent_run_id, trace_id=run.trace_id, dotted_order=run.dotted_order,
            tags=run.tags, serialized=None,
        )
        rows.append(json.loads(row.json(exclude_none=True)))
    sdks.write("langsmith/runs.jsonl", rows)


def main():
    server = HTTPServer(("127.0.0.1", 0), sdks.StandIn)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    openinference(f"http://127.0.0.1:{server.server_port}")
    server.shutdown()
    langsmith()


if __name__ == "__main__":
    main()
