"""Stands between mcptest and a stand-in for a provider, and holds every request to the types of the provider's own SDK.

    provider_oracle.py UPSTREAM

Prints its address, forwards every POST unchanged, and reports on GET /verdict how many requests of each dialect it saw and what was wrong with them.
The SDKs' types allow unknown keys; here they are refused, so that a misspelt one is found.
"""

import http.server
import importlib
import json
import pkgutil
import sys
import threading
import urllib.error
import urllib.request

import typing_extensions
from google.genai import types as google
from pydantic import ConfigDict, TypeAdapter, ValidationError


def refuse_unknown_keys(package):
    """For every typed dictionary of a package that does not say otherwise itself."""
    module = importlib.import_module(package)
    for info in pkgutil.iter_modules(module.__path__, package + "."):
        if info.ispkg:
            continue
        for value in list(vars(importlib.import_module(info.name)).values()):
            if typing_extensions.is_typeddict(value) and not hasattr(value, "__pydantic_config__"):
                value.__pydantic_config__ = ConfigDict(extra="forbid")


for package in ("anthropic.types", "openai.types.chat", "openai.types.responses", "openai.types.shared_params"):
    refuse_unknown_keys(package)

from anthropic.types.message_create_params import MessageCreateParamsNonStreaming, MessageCreateParamsStreaming  # noqa: E402
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming, CompletionCreateParamsStreaming  # noqa: E402
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming, ResponseCreateParamsStreaming  # noqa: E402

ANTHROPIC = (TypeAdapter(MessageCreateParamsNonStreaming), TypeAdapter(MessageCreateParamsStreaming))
CHAT = (TypeAdapter(CompletionCreateParamsNonStreaming), TypeAdapter(CompletionCreateParamsStreaming))
RESPONSES = (TypeAdapter(ResponseCreateParamsNonStreaming), TypeAdapter(ResponseCreateParamsStreaming))
GEMINI = {
    "contents": TypeAdapter(list[google.Content]),
    "systemInstruction": TypeAdapter(google.Content),
    "tools": TypeAdapter(list[google.Tool]),
    "generationConfig": TypeAdapter(google.GenerationConfig),
}


def drain(value):
    """The types have iterables, which are checked only when they are walked through."""
    if isinstance(value, dict):
        for inner in value.values():
            drain(inner)
    elif hasattr(value, "__iter__") and not isinstance(value, (str, bytes)):
        for inner in value:
            drain(inner)


def check_gemini(body):
    for key, value in body.items():
        if key not in GEMINI:
            raise ValueError(f"no field of a request: {key}")
        GEMINI[key].validate_python(value)
    if "contents" not in body:
        raise ValueError("no contents")


def dialect(path):
    path = path.split("?")[0]
    if path.endswith("/messages"):
        return "anthropic", ANTHROPIC
    if path.endswith("/chat/completions"):
        return "openai_chat", CHAT
    if path.endswith("/responses"):
        return "openai_responses", RESPONSES
    if path.endswith((":generateContent", ":streamGenerateContent")):
        return "gemini", None
    raise ValueError(f"no path of a provider: {path}")


def check(path, body):
    name, adapters = dialect(path)
    if adapters is None:
        check_gemini(body)
    else:
        drain(adapters[1 if body.get("stream") else 0].validate_python(body))
    return name


class Oracle(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    upstream = ""
    lock = threading.Lock()
    requests = []
    problems = []

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        with self.lock:
            text = json.dumps({"requests": self.requests, "problems": self.problems})
        self.answer(200, [("content-type", "application/json")], text.encode())

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            body = json.loads(raw)
            name, problem = check(self.path, body), None
        except (ValueError, ValidationError) as error:
            body, name, problem = None, None, f"{self.path}: {str(error)[:3000]}"
        with self.lock:
            self.requests.append({"dialect": name, "path": self.path, "body": body})
            if problem:
                self.problems.append(problem)
        headers = {key: value for key, value in self.headers.items() if key.lower() not in ("host", "connection", "content-length")}
        request = urllib.request.Request(self.upstream + self.path, data=raw, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                self.relay(response)
        except urllib.error.HTTPError as error:
            self.relay(error)
        except OSError as error:
            self.answer(502, [("content-type", "text/plain")], str(error).encode())

    def relay(self, response):
        kept = [(key, value) for key, value in response.headers.items() if key.lower() in ("content-type", "retry-after")]
        self.answer(response.status, kept, response.read())

    def answer(self, status, headers, body):
        self.send_response(status)
        for key, value in headers:
            self.send_header(key, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main():
    Oracle.upstream = sys.argv[1]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Oracle)
    print(f"listening on http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
