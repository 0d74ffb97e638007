"""Parts for tests in Python: a server to call, and assertions on traces.

    >>> from mcptest.testing import assert_trace
    >>> trace = {"tool_calls": [{"name": "search"}, {"name": "order"}]}
    >>> _ = assert_trace(trace).matches(golden_path={"calls": ["search", "order"]})

Both use the program and the library of mcptest: `Server` talks to a server through
`mcptest proxy`, and `assert_trace` is `mcptest.score` with a suite of one test.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import IO, Any

from . import _native
from .__main__ import program
from ._errors import Error
from ._report import Assertion, TestResult
from ._score import score

PROTOCOL = "2025-06-18"
"""The revision that `Server` offers; the server may choose an older one."""


class ServerError(Error):
    """A server that does not start, ends, or does not answer."""


class RequestError(ServerError):
    """A request that the server answered with an error of the protocol."""

    def __init__(self, method: str, code: int, message: str) -> None:
        super().__init__(f"{method}: {message} ({code})")
        self.code = code
        self.message = message


class ToolResult(dict[str, Any]):
    """The result of a call, as the server sent it."""

    @property
    def is_error(self) -> bool:
        """True if the tool reports a failure."""
        return bool(self.get("isError", False))

    @property
    def text(self) -> str:
        """The text parts of the content, a line each."""
        parts = self.get("content") or []
        return "\n".join(part["text"] for part in parts if part.get("type") == "text")

    @property
    def structured(self) -> Any:
        """The structured content, if there is any."""
        return self.get("structuredContent")


class Server:
    """A session with an MCP server: a command over standard input and output, or an address.

    The server runs behind `mcptest proxy`, so nothing of it is left when the session is closed.
    """

    def __init__(
        self,
        command: Sequence[str | os.PathLike[str]] | None = None,
        *,
        url: str | None = None,
        name: str = "server",
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float = 30.0,
    ) -> None:
        if (command is None) == (url is None):
            raise TypeError("pass either a command or a url")
        self.name = name
        self.timeout = timeout
        self._calls: list[dict[str, Any]] = []
        self._results: list[dict[str, Any]] = []
        self._next_id = 0
        self._answers: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        ours = str(program())
        words = [ours, "proxy", "--server", name]
        if url is not None:
            words += ["--url", url]
        else:
            server = [os.fspath(word) for word in command or ()]
            # As in suites, the first word `mcptest` is this very program.
            if server[:1] == ["mcptest"]:
                server[0] = ours
            words += ["--", *server]
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=cwd,
            env=None if env is None else {**os.environ, **env},
            encoding="utf-8",
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._stdin: IO[str] = self._process.stdin
        self._reader = threading.Thread(
            target=self._read, args=(self._process.stdout,), name=f"mcptest {name}", daemon=True
        )
        self._reader.start()
        try:
            self.info: dict[str, Any] = self._request(
                "initialize",
                {
                    "protocolVersion": PROTOCOL,
                    "capabilities": {},
                    "clientInfo": {"name": "mcptest-python", "version": _native.VERSION},
                },
            )
            self._send({"method": "notifications/initialized"})
        except BaseException:
            self.close()
            raise

    def call(self, tool: str, /, **args: Any) -> ToolResult:
        """Calls a tool. A call that fails or is refused is a result with `is_error`, as in
        suites. A server that does not answer raises `ServerError`."""
        return self.call_with(tool, args)

    def call_with(self, tool: str, args: Mapping[str, Any]) -> ToolResult:
        """Calls a tool with arguments whose names are not those of Python."""
        call_id = f"c{len(self._calls) + 1}"
        call = {"id": call_id, "name": tool, "server": self.name, "args": dict(args)}
        self._calls.append(call)
        try:
            result = self._request("tools/call", {"name": tool, "arguments": dict(args)})
        except RequestError as error:
            result = {"isError": True, "content": [{"type": "text", "text": error.message}]}
        except ServerError as error:
            content = [{"type": "text", "text": str(error)}]
            self._results.append({"call_id": call_id, "is_error": True, "content": content})
            raise
        found = ToolResult(result)
        recorded = {"call_id": call_id, "is_error": found.is_error}
        if "content" in found:
            recorded["content"] = found["content"]
        if "structuredContent" in found:
            recorded["structuredContent"] = found["structuredContent"]
        self._results.append(recorded)
        return found

    def tools(self) -> list[dict[str, Any]]:
        """All tools that the server lists."""
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        while True:
            page = self._request("tools/list", {} if cursor is None else {"cursor": cursor})
            found += page.get("tools", [])
            cursor = page.get("nextCursor")
            if not cursor:
                return found

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Sends any other request of the protocol and returns its result."""
        return self._request(method, dict(params or {}))

    @property
    def trace(self) -> dict[str, Any]:
        """The calls so far, as a trace for `assert_trace` and `mcptest.score`."""
        return {"tool_calls": list(self._calls), "tool_results": list(self._results)}

    def close(self) -> None:
        """Ends the server."""
        try:
            self._stdin.close()
        except OSError:
            pass
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.terminate()
            try:
                self._process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._reader.join(timeout=10)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _send(self, message: Mapping[str, Any]) -> None:
        text = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":"))
        try:
            self._stdin.write(text + "\n")
            self._stdin.flush()
        except (OSError, ValueError) as error:
            raise ServerError(f"the server {self.name} has ended") from error

    def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._next_id += 1
        number = self._next_id
        self._send({"id": number, "method": method, "params": params})
        while True:
            try:
                answer = self._answers.get(timeout=self.timeout)
            except queue.Empty:
                raise ServerError(
                    f"the server {self.name} did not answer {method} in {self.timeout:g} s"
                ) from None
            if answer is None:
                # For the next request too.
                self._answers.put(None)
                raise ServerError(f"the server {self.name} ended before it answered {method}")
            # An answer to a request that was given up is late, and of no interest.
            if answer.get("id") != number:
                continue
            if "error" in answer:
                error = answer["error"]
                raise RequestError(method, error.get("code", 0), str(error.get("message")))
            result: dict[str, Any] = answer.get("result") or {}
            return result

    def _read(self, stdout: IO[str]) -> None:
        for line in stdout:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if not isinstance(message, dict):
                continue
            if "method" not in message:
                self._answers.put(message)
            elif "id" in message:
                self._answer(message)
        self._answers.put(None)

    def _answer(self, message: dict[str, Any]) -> None:
        """Answers a request of the server: this client only answers `ping`."""
        if message["method"] == "ping":
            body: dict[str, Any] = {"result": {}}
        else:
            body = {"error": {"code": -32601, "message": "mcptest does not offer this"}}
        try:
            self._send({"id": message["id"], **body})
        except ServerError:
            pass


class TraceAssertion:
    """Assertions on one trace, or on several runs of the same task."""

    def __init__(self, traces: Sequence[Mapping[str, Any]]) -> None:
        if not traces:
            raise ValueError("there is no trace to assert on")
        self._traces = [dict(trace, test="trace", run=at) for at, trace in enumerate(traces, 1)]
        calls = (call for trace in traces for call in trace.get("tool_calls", ()))
        names = dict.fromkeys(call["server"] for call in calls if call.get("server"))
        self._servers = {name: {"command": ["none"]} for name in names}

    def matches(self, *expect: Mapping[str, Any], **gates: Any) -> TraceAssertion:
        """Asserts expectations (`{"tool_calls[0].name": "search"}`) and gates
        (`golden_path={"calls": [...]}`), written as in a suite. Returns itself, for more."""
        entries = [{target: matcher} for each in expect for target, matcher in each.items()]
        if not entries and not gates:
            raise TypeError("pass expectations, gates, or both")
        test: dict[str, Any] = {"name": "trace", **gates}
        if entries:
            test["expect"] = entries
        suite: dict[str, Any] = {"name": "assert_trace", "tests": [test]}
        if self._servers:
            suite["servers"] = self._servers
        result = score(suite, self._traces, runs=True, strict=True).tests[0]
        if not result.passed:
            __tracebackhide__ = True
            raise AssertionError("\n".join([f"verdict {result.verdict}", *reasons(result)]))
        return self


def assert_trace(trace: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> TraceAssertion:
    """Starts assertions on a trace, or on a list of traces: the runs of one task."""
    return TraceAssertion([trace] if isinstance(trace, Mapping) else trace)


def reasons(test: TestResult) -> list[str]:
    """The reasons why a test did not pass, a line each."""
    lines: list[str] = []

    def failed(assertions: Sequence[Assertion], place: str) -> None:
        for it in assertions:
            if not it.passed:
                matcher, actual = json.dumps(it.matcher), json.dumps(it.actual)
                why = f" ({it.reason})" if it.reason else ""
                lines.append(f"  {place}{it.target}: expected {matcher}, actual {actual}{why}")

    for run in test.runs:
        if run.error:
            lines.append(f"  {run.name}: {run.error.get('kind')}: {run.error.get('message')}")
        failed(run.assertions, f"{run.name}: " if len(test.runs) > 1 else "")
    for gate in test.gates:
        failed(gate.assertions, f"{gate.block}: ")
        if not gate.passed:
            lines += [f"  {gate.block}: {finding}" for finding in gate.findings]
        if gate.no_evidence:
            lines.append(f"  {gate.block}: no evidence: {gate.no_evidence}")
    if test.no_evidence:
        lines.append(f"  no evidence: {test.no_evidence}")
    return lines
