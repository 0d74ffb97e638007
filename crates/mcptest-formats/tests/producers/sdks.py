"""Makes the fixtures of the model providers with their official SDKs, offline.

    pip install openai anthropic google-genai boto3
    python sdks.py FIXTURES

A stand-in on the loopback interface answers the requests; its answers follow the documented
schemas. Every answer goes through the SDK's own types, and the fixtures are what the SDK sent and
what its types serialise to.
"""

import json
import pathlib
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

FIXTURES = pathlib.Path(sys.argv[1])
TOOLS = {"get_weather": "Weather of a city", "get_time": "Local time of a city"}
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}
PROMPT = "What are the weather and the time in Rome?"
FINAL = "It is sunny in Rome. The clock is not available."


def run_tool(name, args):
    """Returns the text of a result, and if it is an error."""
    if name == "get_weather":
        return json.dumps({"city": args["city"], "sky": "sunny"}), False
    return "Error: no clock for " + args["city"], True


class StandIn(BaseHTTPRequestHandler):
    answers = []
    bodies = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        StandIn.bodies.append(json.loads(body))
        answer = json.dumps(StandIn.answers.pop(0)).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def prepare(answers):
    StandIn.answers = list(answers)
    StandIn.bodies = []


def write(name, value):
    path = FIXTURES / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(one) + "\n" for one in value))
    else:
        path.write_text(json.dumps(value, indent=1) + "\n")
    print("wrote", name)


def openai_chat(base):
    import openai

    client = openai.OpenAI(base_url=base + "/v1", api_key="none")
    tools = [
        {"type": "function", "function": {"name": n, "description": d, "parameters": SCHEMA}}
        for n, d in TOOLS.items()
    ]

    def completion(number, message, reason):
        return {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion",
            "created": 1763400000,
            "model": "gpt-4.1-2025-04-14",
            "choices": [
                {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
            ],
            "usage": {
                "prompt_tokens": 100 * number,
                "completion_tokens": 20,
                "total_tokens": 100 * number + 20,
                "prompt_tokens_details": {"cached_tokens": 64 * (number - 1), "audio_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
            },
        }

    def call(id, name):
        return {
            "id": id,
            "type": "function",
            "function": {"name": name, "arguments": '{"city":"Rome"}'},
        }

    prepare([
        completion(1, {
            "role": "assistant", "content": None, "refusal": None,
            "tool_calls": [call("call_w", "get_weather"), call("call_t", "get_time")],
        }, "tool_calls"),
        completion(2, {"role": "assistant", "content": FINAL, "refusal": None}, "stop"),
    ])
    messages = [{"role": "user", "content": PROMPT}]
    pairs = []
    while True:
        answer = client.chat.completions.create(
            model="gpt-4.1", messages=messages, tools=tools
        )
        pairs.append({"request": StandIn.bodies[-1], "response": answer.to_dict()})
        message = answer.choices[0].message
        messages.append(message.to_dict())
        if not message.tool_calls:
            break
        # In another order than the calls.
        for one in reversed(message.tool_calls):
            text, _ = run_tool(one.function.name, json.loads(one.function.arguments))
            messages.append({"role": "tool", "tool_call_id": one.id, "content": text})
    write("openai-chat/messages.json", messages)
    write("openai-chat/pairs.jsonl", pairs)


def openai_responses(base):
    import openai

    client = openai.OpenAI(base_url=base + "/v1", api_key="none")
    tools = [
        {"type": "function", "name": n, "description": d, "parameters": SCHEMA, "strict": False}
        for n, d in TOOLS.items()
    ] + [{
        "type": "mcp", "server_label": "clock", "server_url": "https://clock.example/mcp",
        "require_approval": "never",
    }]

    def response(number, output):
        return {
            "id": f"resp_{number}", "object": "response", "created_at": 1763400000,
            "status": "completed", "error": None, "incomplete_details": None,
            "instructions": None, "max_output_tokens": None, "model": "gpt-4.1-2025-04-14",
            "output": output, "parallel_tool_calls": True, "previous_response_id": None,
            "reasoning": {"effort": None, "summary": None}, "store": True, "temperature": 1.0,
            "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [],
            "top_p": 1.0, "truncation": "disabled",
            "usage": {
                "input_tokens": 100 * number,
                "input_tokens_details": {"cached_tokens": 64 * (number - 1)},
                "output_tokens": 20, "output_tokens_details": {"reasoning_tokens": 8},
                "total_tokens": 100 * number + 20,
            },
            "user": None, "metadata": {},
        }

    prepare([
        response(1, [
            {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "clock", "tools": [
                {"name": "get_time", "description": "Local time", "input_schema": SCHEMA,
                 "annotations": None}]},
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "function_call", "id": "fc_1", "call_id": "call_w", "name": "get_weather",
             "arguments": '{"city":"Rome"}', "status": "completed"},
            {"type": "mcp_call", "id": "mcp_1", "server_label": "clock", "name": "get_time",
             "arguments": '{"city":"Rome"}', "output": None, "status": "failed",
             "error": {"type": "mcp_tool_execution_error", "content": [
                 {"type": "text", "text": "no clock for Rome"}]}},
        ]),
        response(2, [
            {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
             "content": [{"type": "output_text", "text": FINAL, "annotations": []}]},
        ]),
    ])
    items = [{"role": "user", "content": PROMPT}]
    pairs = []
    while True:
        answer = client.responses.create(model="gpt-4.1", input=items, tools=tools)
        pairs.append({"request": StandIn.bodies[-1], "response": answer.to_dict()})
        items = items + [item.to_dict() for item in answer.output]
        calls = [item for item in answer.output if item.type == "function_call"]
        if not calls:
            break
        for one in calls:
            text, _ = run_tool(one.name, json.loads(one.arguments))
            items.append({
                "type": "function_call_output", "call_id": one.call_id, "output": text,
            })
    write("openai-responses/items.json", items)
    write("openai-responses/pairs.jsonl", pairs)


def anthropic(base):
    import anthropic

    client = anthropic.Anthropic(base_url=base, api_key="none")
    tools = [
        {"name": n, "description": d, "input_schema": SCHEMA} for n, d in TOOLS.items()
    ]

    def message(number, content, reason):
        return {
            "id": f"msg_{number}", "type": "message", "role": "assistant",
            "model": "claude-sonnet-4-5-20250929", "content": content, "stop_reason": reason,
            "stop_sequence": None,
            "usage": {
                "input_tokens": 40, "cache_creation_input_tokens": 60 if number == 1 else 0,
                "cache_read_input_tokens": 0 if number == 1 else 160, "output_tokens": 20,
                "service_tier": "standard",
            },
        }

    prepare([
        message(1, [
            {"type": "text", "text": "I will look it up."},
            {"type": "tool_use", "id": "toolu_w", "name": "get_weather", "input": {"city": "Rome"}},
            {"type": "tool_use", "id": "toolu_t", "name": "get_time", "input": {"city": "Rome"},
             "caller": {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}},
            {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "get_time",
             "server_name": "clock", "input": {"city": "Rome"}},
            {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": True,
             "content": [{"type": "text", "text": "no clock for Rome", "citations": None}]},
        ], "tool_use"),
        message(2, [{"type": "text", "text": FINAL}], "end_turn"),
    ])
    messages = [{"role": "user", "content": PROMPT}]
    pairs = []
    while True:
        answer = client.beta.messages.create(
            model="claude-sonnet-4-5", max_tokens=1000, messages=messages, tools=tools,
            mcp_servers=[{"type": "url", "name": "clock", "url": "https://clock.example/mcp"}],
            betas=["mcp-client-2025-11-20"],
        )
        pairs.append({"request": StandIn.bodies[-1], "response": answer.to_dict()})
        blocks = [block.to_dict() for block in answer.content]
        messages.append({"role": "assistant", "content": blocks})
        calls = [block for block in answer.content if block.type == "tool_use"]
        if not calls:
            break
        results = []
        for one in reversed(calls):
            text, is_error = run_tool(one.name, one.input)
            result = {"type": "tool_result", "tool_use_id": one.id, "content": text}
            if is_error:
                result["is_error"] = True
            results.append(result)
        messages.append({"role": "user", "content": results})
    write("anthropic/messages.json", messages)
    write("anthropic/pairs.jsonl", pairs)


def gemini(base):
    from google import genai
    from google.genai import types

    client = genai.Client(api_key="none", http_options={"base_url": base})
    declarations = [
        types.FunctionDeclaration(name=n, description=d, parameters_json_schema=SCHEMA)
        for n, d in TOOLS.items()
    ]
    config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=declarations)])

    def response(number, parts):
        return {
            "candidates": [{
                "content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0,
            }],
            "usageMetadata": {
                "promptTokenCount": 100 * number, "candidatesTokenCount": 20,
                "thoughtsTokenCount": 8, "totalTokenCount": 100 * number + 28,
            },
            "modelVersion": "gemini-2.5-flash", "responseId": f"r{number}",
        }

    prepare([
        response(1, [
            {"functionCall": {"name": "get_weather", "args": {"city": "Rome"}}},
            {"functionCall": {"name": "get_time", "args": {"city": "Rome"}}},
        ]),
        response(2, [{"text": FINAL}]),
    ])
    contents = [types.Content(role="user", parts=[types.Part(text=PROMPT)])]
    pairs, dumped = [], []
    while True:
        answer = client.models.generate_content(
            model="gemini-2.5-flash", contents=contents, config=config
        )
        pairs.append({
            "request": {"model": "gemini-2.5-flash", **StandIn.bodies[-1]},
            "response": answer.model_dump(
                mode="json", by_alias=True, exclude_none=True, exclude={"sdk_http_response"}
            ),
        })
        dumped.append(answer.model_dump(
            mode="json", exclude_none=True, exclude={"sdk_http_response"}
        ))
        contents.append(answer.candidates[0].content)
        calls = answer.function_calls
        if not calls:
            break
        parts = []
        for one in reversed(calls):
            text, is_error = run_tool(one.name, one.args)
            parts.append(types.Part.from_function_response(
                name=one.name, response={"error" if is_error else "output": text}
            ))
        contents.append(types.Content(role="user", parts=parts))
    write("gemini/contents.json", [
        content.model_dump(mode="json", exclude_none=True) for content in contents
    ])
    write("gemini/pairs.jsonl", pairs)


def bedrock(base):
    import boto3
    from botocore.config import Config

    client = boto3.client(
        "bedrock-runtime", region_name="us-east-1", endpoint_url=base,
        aws_access_key_id="none", aws_secret_access_key="none",
        config=Config(retries={"max_attempts": 0}),
    )
    tools = {"tools": [
        {"toolSpec": {"name": n, "description": d, "inputSchema": {"json": SCHEMA}}}
        for n, d in TOOLS.items()
    ]}

    def response(number, content, reason):
        return {
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": reason, "metrics": {"latencyMs": 500},
            "usage": {
                "inputTokens": 40, "outputTokens": 20, "totalTokens": 220 if number == 2 else 60,
                "cacheReadInputTokens": 160 if number == 2 else 0, "cacheWriteInputTokens": 0,
            },
        }

    prepare([
        response(1, [
            {"text": "I will look it up."},
            {"toolUse": {"toolUseId": "tooluse_w", "name": "get_weather", "input": {"city": "Rome"}}},
            {"toolUse": {"toolUseId": "tooluse_t", "name": "get_time", "input": {"city": "Rome"}}},
        ], "tool_use"),
        response(2, [{"text": FINAL}], "end_turn"),
    ])
    messages = [{"role": "user", "content": [{"text": PROMPT}]}]
    pairs = []
    while True:
        request = {
            "modelId": "anthropic.claude-sonnet-4-5-20250929-v1:0",
            "messages": json.loads(json.dumps(messages)), "toolConfig": tools,
        }
        answer = client.converse(**request)
        answer.pop("ResponseMetadata")
        pairs.append({"request": request, "response": answer})
        message = answer["output"]["message"]
        messages.append(message)
        calls = [block["toolUse"] for block in message["content"] if "toolUse" in block]
        if not calls:
            break
        results = []
        for one in reversed(calls):
            text, is_error = run_tool(one["name"], one["input"])
            content = [{"text": text}] if is_error else [{"json": json.loads(text)}]
            results.append({"toolResult": {
                "toolUseId": one["toolUseId"], "content": content,
                "status": "error" if is_error else "success",
            }})
        messages.append({"role": "user", "content": results})
    write("bedrock/messages.json", messages)
    write("bedrock/pairs.jsonl", pairs)


def main():
    server = HTTPServer(("127.0.0.1", 0), StandIn)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}"
    for make in (openai_chat, openai_responses, anthropic, gemini, bedrock):
        make(base)
    server.shutdown()


if __name__ == "__main__":
    main()
