"""The gates as functions: figures from traces, without a suite file.

Each gate of the registry is a function named after its block. It takes traces, the block as in a
suite, and returns a `GateResult`:

    >>> from mcptest import gates
    >>> traces = [{"tool_calls": [{"name": "search"}, {"name": "order"}]}]
    >>> gates.golden_path(traces, {"calls": ["search", "order"]})["passed"]
    1

`GATES` lists the functions' names; `help(gates.golden_path)` shows the figures.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from . import _native
from ._native import Suite
from ._report import GateResult
from ._score import Traces, score

_TEST = "traces"


def _judge(
    block: str,
    traces: Traces,
    keys: Mapping[str, Any],
    *,
    beside: Mapping[str, Any] | None,
    expect: Iterable[Mapping[str, Any]],
    servers: Iterable[str],
    threads: int | None,
) -> GateResult:
    others = dict(beside or {})
    # Attacks belong to the suite, and `inject:` of the test names them.
    attacks = others.pop("attacks", [])
    test: dict[str, Any] = {"name": _TEST, **others, block: dict(keys)}
    assertions = list(expect)
    if assertions:
        test["expect"] = assertions
    # Nothing is started: scoring needs only the names.
    named = {name: {"command": ["none"]} for name in servers}
    suite: dict[str, Any] = {"name": block, "tests": [test]}
    if named:
        suite["servers"] = named
    if attacks:
        suite["attacks"] = list(attacks)
    loaded = Suite.parse(json.dumps(suite, indent=2), name=f"{block}.json")
    tests = score(loaded, traces, test=_TEST, strict=True, threads=threads).tests
    if len(tests) > 1:
        models = ", ".join(str(it.model) for it in tests)
        raise ValueError(f"the traces are of several models ({models}): score each on its own")
    return tests[0].gate(block)


def _function(info: Mapping[str, Any]) -> Any:
    block: str = info["block"]

    def gate(
        traces: Traces,
        block_: Mapping[str, Any],
        /,
        *,
        beside: Mapping[str, Any] | None = None,
        expect: Iterable[Mapping[str, Any]] = (),
        servers: Iterable[str] = (),
        threads: int | None = None,
    ) -> GateResult:
        return _judge(
            block,
            traces,
            block_,
            beside=beside,
            expect=expect,
            servers=servers,
            threads=threads,
        )

    gate.__name__ = gate.__qualname__ = block
    figures = "\n".join(f"- `{it['name']}` ({it['unit']}): {it['doc']}" for it in info["targets"])
    gate.__doc__ = f"""{info["summary"]}

The block has the keys of `{block}:` in a suite. `beside` has other keys of the test, for gates that
read one, and the suite's `attacks`; `expect` has the assertions that each run must hold; `servers` names the servers,
for tools whose names begin with one. All traces must be of one model.

Figures:
{figures}
"""
    return gate


GATES: tuple[str, ...] = tuple(info["block"] for info in _native.gates())
"""The names of all gates, in the order of reports."""

for _info in _native.gates():
    globals()[_info["block"]] = _function(_info)

__all__ = ["GATES", *GATES]  # pyright: ignore[reportUnsupportedDunderAll]
