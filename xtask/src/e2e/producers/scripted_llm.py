"""A model provider that plays a script: Anthropic Messages, OpenAI Chat and Responses, Gemini.

Usage: scripted_llm.py SCRIPT LOG

Prints `listening on ADDRESS`. SCRIPT is a JSON file with `turns`, a list of answers:
`{"say": "text", "calls": [{"tool": "name", "server": "name", "args": {}}]}`; `raw_args` instead of
`args` is sent as it is, `{"status": 401}` refuses the request, and `{"wait": 5}` answers it after
that many seconds. `${read:REGEX}` in an argument is
the last match in what the model was sent: it does what a text says. The number of model turns in a
request selects the answer, so no state is kept. A request that offers none of the script's tools gets a short text. LOG gets one JSON line
per answer: its turn (null outside the script) and the tokens that were reported.
"""

import json
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SCRIPT = json.load(open(sys.argv[1]))
LOG, LOCK = sys.argv[2], threading.Lock()
WANTED = [call for turn in SCRIPT["turns"] for call in turn.get("calls", [])]


# The types and messages of real providers: some agents show nothing else of an answer.
REFUSALS = {401: ("authentication_error", "invalid x-api-key"),
            429: ("rate_limit_error", "This request would exceed your rate limit."),
            500: ("api_error", "Internal server error")}


def plain(name):
    return re.sub(r"[^a-z0-9]", "", (name or "").lower())


def select(offered, call):
    """The offered (namespace, name) that a call of the script means."""
    exact = plain(call["server"] + call["tool"])
    for wanted in (exact, plain(call["tool"])):
        for namespace, name in offered:
            # A tool of the provider itself (web search) has a type and no name.
            if name and plain((namespace or "") + name).endswith(wanted):
                return namespace, name
    return None


def filled(args, request):
    """The arguments, with what the model read."""
    if isinstance(args, dict):
        return {name: filled(value, request) for name, value in args.items()}
    wanted = isinstance(args, str) and re.fullmatch(r"\$\{read:(.*)\}", args)
    if not wanted:
        return args
    return (re.findall(wanted[1], json.dumps(request)) or [""])[-1]


def tokens(turn):
    """Different for each turn, so that counting one twice shows."""
    number = 0 if turn is None else turn + 1
    return {"input": 1000 + 100 * number, "cache_read": 300 + number, "cache_write": 40 + number,
            "output": 20 + number, "reasoning": 5 + number}


def groups(roles):
    """The number of runs of equal roles that are the model's."""
    return sum(role == "model" and (at == 0 or roles[at - 1] != "model")
               for at, role in enumerate(roles))


class Answer:
    """The answer to one request."""

    def __init__(self, offered, roles, request):
        turn = groups(roles)
        known = any(select(offered, call) for call in WANTED)
        self.turn = turn if known and turn < len(SCRIPT["turns"]) else None
        script = {"say": "A short title."} if self.turn is None else SCRIPT["turns"][self.turn]
        self.usage = tokens(self.turn)
        self.text = script.get("say")
        self.status = script.get("status")
        time.sleep(script.get("wait", 0))
        self.calls = []
        for number, call in enumerate(script.get("calls", [])):
            namespace, name = select(offered, call) or (None, call["tool"])
            raw, args = call.get("raw_args"), filled(call.get("args", {}), request)
            self.calls.append({"id": f"call_{self.turn}_{number}", "namespace": namespace,
                               "name": name, "args": args,
                               "text": json.dumps(args) if raw is None else raw})


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, body, kind="application/json", status=200):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self, events):
        lines = []
        for event in events:
            name = event.get("type") if isinstance(event, dict) else None
            if name:
                lines.append(f"event: {name}")
            lines.append("data: " + (event if isinstance(event, str) else json.dumps(event)) + "\n")
        self.send(("\n".join(lines) + "\n").encode(), "text/event-stream")

    def do_HEAD(self):
        self.send(b"")

    def do_GET(self):
        self.send({"object": "list", "data": []})

    def refuse(self, answer):
        kind, message = REFUSALS.get(answer.status, ("error", "The script refuses this."))
        error = {"type": kind, "code": answer.status, "message": message}
        self.send({"type": "error", "error": error}, status=answer.status)
        return None

    def body(self):
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        body = b""
        while size := int(self.rfile.readline().strip() or b"0", 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def do_POST(self):
        request, path = json.loads(self.body() or b"{}"), self.path.split("?")[0]
        if "count_tokens" in path or "countTokens" in path:
            return self.send({"input_tokens": 1000, "totalTokens": 1000})
        for ending, dialect in (("/messages", self.anthropic), ("/chat/completions", self.chat),
                                ("/responses", self.open_responses), ("enerateContent", self.gemini)):
            if ending in path:
                if (answer := dialect(request, path)) is None:
                    return None
                with LOCK, open(LOG, "a") as log:
                    log.write(json.dumps({"turn": answer.turn, "usage": answer.usage}) + "\n")
                return None
        return self.send({})

    def anthropic(self, request, _):
        offered = [(None, tool.get("name")) for tool in request.get("tools") or []]
        roles = ["model" if message["role"] == "assistant" else "user"
                 for message in request.get("messages", [])]
        answer = Answer(offered, roles, request)
        if answer.status:
            return self.refuse(answer)
        usage = answer.usage
        usage = {"input_tokens": usage["input"] - usage["cache_read"] - usage["cache_write"],
                 "cache_creation_input_tokens": usage["cache_write"],
                 "cache_read_input_tokens": usage["cache_read"], "output_tokens": usage["output"]}
        stop = "tool_use" if answer.calls else "end_turn"
        message = {"id": f"msg_{answer.turn}", "type": "message", "role": "assistant",
                   "model": request.get("model"), "content": [], "stop_reason": None,
                   "stop_sequence": None, "usage": usage}
        blocks = [{"type": "text", "text": answer.text}] if answer.text else []
        blocks += [{"type": "tool_use", "id": "toolu_" + call["id"], "name": call["name"],
                    "input": call["args"]} for call in answer.calls]
        if not request.get("stream"):
            self.send({**message, "content": blocks, "stop_reason": stop})
            return answer
        first = {**message, "usage": {**usage, "output_tokens": 1}}
        events = [{"type": "message_start", "message": first}]
        for at, block in enumerate(blocks):
            if block["type"] == "text":
                start = {"type": "text", "text": ""}
                delta = {"type": "text_delta", "text": block["text"]}
            else:
                start = {**block, "input": {}}
                call = answer.calls[at - len(blocks) + len(answer.calls)]
                delta = {"type": "input_json_delta", "partial_json": call["text"]}
            events += [{"type": "content_block_start", "index": at, "content_block": start},
                       {"type": "content_block_delta", "index": at, "delta": delta},
                       {"type": "content_block_stop", "index": at}]
        events += [{"type": "message_delta", "usage": usage,
                    "delta": {"stop_reason": stop, "stop_sequence": None}},
                   {"type": "message_stop"}]
        self.stream(events)
        return answer

    def chat(self, request, _):
        offered = [(None, tool.get("function", {}).get("name"))
                   for tool in request.get("tools") or []]
        roles = ["model" if message["role"] == "assistant" else "user"
                 for message in request.get("messages", [])]
        answer = Answer(offered, roles, request)
        if answer.status:
            return self.refuse(answer)
        usage = answer.usage
        usage = {"prompt_tokens": usage["input"], "completion_tokens": usage["output"],
                 "total_tokens": usage["input"] + usage["output"],
                 "prompt_tokens_details": {"cached_tokens": usage["cache_read"]},
                 "completion_tokens_details": {"reasoning_tokens": usage["reasoning"]}}
        calls = [{"index": at, "id": call["id"], "type": "function",
                  "function": {"name": call["name"], "arguments": call["text"]}}
                 for at, call in enumerate(answer.calls)]
        stop = "tool_calls" if calls else "stop"
        message = {"role": "assistant", "content": answer.text,
                   **({"tool_calls": calls} if calls else {})}
        base = {"id": f"chatcmpl-{answer.turn}", "created": 1700000000,
                "model": request.get("model")}
        if not request.get("stream"):
            self.send({**base, "object": "chat.completion", "usage": usage, "choices": [
                {"index": 0, "message": message, "finish_reason": stop}]})
            return answer
        base["object"] = "chat.completion.chunk"
        self.stream([
            {**base, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
            {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": stop}]},
            {**base, "choices": [], "usage": usage}, "[DONE]"])
        return answer

    def open_responses(self, request, _):
        offered = []
        for tool in request.get("tools") or []:
            if tool.get("type") == "namespace":
                offered += [(tool["name"], inner.get("name")) for inner in tool.get("tools", [])]
            else:
                offered.append((None, tool.get("name")))
        items = request.get("input")
        roles = ["model" if item.get("type") in ("function_call", "reasoning")
                 or item.get("role") == "assistant" else "user"
                 for item in (items if isinstance(items, list) else [])]
        answer = Answer(offered, roles, request)
        if answer.status:
            return self.refuse(answer)
        usage = answer.usage
        usage = {"input_tokens": usage["input"], "output_tokens": usage["output"],
                 "input_tokens_details": {"cached_tokens": usage["cache_read"]},
                 "output_tokens_details": {"reasoning_tokens": usage["reasoning"]},
                 "total_tokens": usage["input"] + usage["output"]}
        output = []
        if answer.text:
            part = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
            output.append({"type": "message", "id": f"msg_{answer.turn}", "role": "assistant",
                           "status": "completed", "content": [part]})
        for call in answer.calls:
            item = {"type": "function_call", "id": "fc_" + call["id"], "call_id": call["id"],
                    "name": call["name"], "arguments": call["text"], "status": "completed"}
            if call["namespace"]:
                item["namespace"] = call["namespace"]
            output.append(item)
        response = {"id": f"resp_{answer.turn}", "object": "response", "created_at": 1700000000,
                    "model": request.get("model"), "status": "completed", "output": output,
                    "usage": usage, "error": None, "incomplete_details": None,
                    "instructions": None, "metadata": {}, "parallel_tool_calls": True,
                    "temperature": 1, "tool_choice": "auto", "tools": [], "top_p": 1}
        if not request.get("stream"):
            self.send(response)
            return answer
        begun = {**response, "status": "in_progress", "output": [], "usage": None}
        events = []

        def event(kind, **values):
            events.append({"type": kind, "sequence_number": len(events), **values})

        event("response.created", response=begun)
        for at, item in enumerate(output):
            started = {**item, "status": "in_progress"}
            started["content" if item["type"] == "message" else "arguments"] = (
                [] if item["type"] == "message" else "")
            event("response.output_item.added", output_index=at, item=started)
            if item["type"] == "message":
                part = item["content"][0]
                place = {"item_id": item["id"], "output_index": at, "content_index": 0}
                event("response.content_part.added", part={**part, "text": ""}, **place)
                event("response.output_text.delta", delta=part["text"], logprobs=[], **place)
                event("response.output_text.done", text=part["text"], logprobs=[], **place)
                event("response.content_part.done", part=part, **place)
            else:
                place = {"item_id": item["id"], "output_index": at}
                event("response.function_call_arguments.delta", delta=item["arguments"], **place)
                event("response.function_call_arguments.done", name=item["name"],
                      arguments=item["arguments"], **place)
            event("response.output_item.done", output_index=at, item=item)
        event("response.completed", response=response)
        self.stream(events)
        return answer

    def gemini(self, request, path):
        offered = [(None, function.get("name")) for tool in request.get("tools") or []
                   for function in tool.get("functionDeclarations")
                   or tool.get("function_declarations") or []]
        roles = ["model" if content.get("role") == "model" else "user"
                 for content in request.get("contents", [])]
        answer = Answer(offered, roles, request)
        if answer.status:
            return self.refuse(answer)
        usage = answer.usage
        # Thoughts are not part of the candidates here, unlike everywhere else.
        usage = {"promptTokenCount": usage["input"], "cachedContentTokenCount": usage["cache_read"],
                 "candidatesTokenCount": usage["output"] - usage["reasoning"],
                 "thoughtsTokenCount": usage["reasoning"],
                 "totalTokenCount": usage["input"] + usage["output"]}
        text = answer.text
        kind = request.get("generationConfig", {}).get("responseMimeType")
        if kind == "application/json":
            text = json.dumps({"reasoning": "x", "next_speaker": "user", "model_choice": "flash"})
        # In two parts, as a real stream has them.
        halves = [text[: len(text) // 2], text[len(text) // 2 :]] if text else []
        parts = [{"text": half} for half in halves]
        parts += [{"functionCall": {"name": call["name"], "args": call["args"]}}
                  for call in answer.calls]
        last = {"candidates": [{"index": 0, "content": {"role": "model", "parts": parts[-1:]},
                                "finishReason": "STOP"}],
                "usageMetadata": usage, "modelVersion": "gemini-2.5-flash",
                "responseId": f"response_{answer.turn}"}
        if "stream" not in path:
            last["candidates"][0]["content"]["parts"] = parts
            self.send(last)
            return answer
        events = [{"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}],
                   "modelVersion": "gemini-2.5-flash", "responseId": f"response_{answer.turn}"}
                  for part in parts[:-1]]
        self.stream([*events, last])
        return answer


class Server(ThreadingHTTPServer):
    # Ten agents may connect at once.
    request_queue_size = 128

    def handle_error(self, request, address):
        # An agent that ends does not read its last answers.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, address)


server = Server(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
