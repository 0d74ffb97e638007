"""Parts that the tests share."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

SUITE = """\
name: shop
servers:
  shop: { command: [none] }
tests:
  - name: orders
    expect:
      - final_response: { contains: ordered }
    tool_selection: { expected_tool: order, min_selection_rate: 0.5, max_total_tokens: 900 }
    equal_function_sets:
      classes:
        - { name: find, members: [shop.search, shop.find] }
        - { name: order, members: [shop.order] }
      expect:
        - tool_selection.f1: { ">=": 20 }
    orchestration: {}
    trajectory:
      mode: superset
      calls: [{ name: order, args: any }]
    golden_path: { calls: [search, order] }
    reliability: {}
    stability: {}
  - name: refuses
    tool_edges: { restricted: [shop.refund] }
"""


def trace(number: int, *, test: str = "orders", run: int | None = None) -> dict[str, Any]:
    """A trace that depends on its number only."""
    tools = ["search", "find", "order", "refund"]
    names = [tools[(number * step) % 4] for step in range(1, 2 + number % 3)]
    if number % 5:
        names.append("order")
    calls = [
        {"id": f"c{at}", "server": "shop", "name": name, "args": {"q": number % 7}, "turn": at + 1}
        for at, name in enumerate(names)
    ]
    results = [
        {
            "call_id": call["id"],
            "is_error": number % 11 == 0,
            "content": [{"type": "text", "text": "x"}],
        }
        for call in calls
    ]
    made: dict[str, Any] = {"test": test, "model": f"model-{number % 2}", "tool_calls": calls}
    made["tool_results"] = results
    made["conversation"] = {
        "turns": [{"role": "assistant", "content": "héllo \u2028 there"}],
        "tokens": {"input": 10 * (number % 97), "output": 5, "total": 10 * (number % 97) + 5},
    }
    if number % 4:
        made["final_response"] = "I have ordered it."
    if run is not None:
        made["run"] = run
    return made


def mcptest(*arguments: str | os.PathLike[str]) -> subprocess.CompletedProcess[bytes]:
    """Runs the program of the wheel."""
    program = Path(sysconfig.get_path("scripts")) / "mcptest"
    return subprocess.run([program, *arguments], capture_output=True, check=False)


@pytest.fixture
def traces() -> list[dict[str, Any]]:
    """Traces without `run`, in an order that matters."""
    return [
        trace(number, test="refuses" if number % 10 == 3 else "orders") for number in range(1, 61)
    ]


@pytest.fixture
def files(tmp_path: Path, traces: list[dict[str, Any]]) -> tuple[Path, Path]:
    """The suite and the traces as files."""
    suite, lines = tmp_path / "suite.yml", tmp_path / "traces.jsonl"
    suite.write_text(SUITE)
    lines.write_text("".join(json.dumps(it) + "\n" for it in traces))
    return suite, lines


@pytest.fixture
def expected(files: tuple[Path, Path]) -> bytes:
    """The summary that the program makes of the same traces."""
    suite, lines = files
    done = mcptest("score", suite, "--trace", lines, "--summary", "--reporter", "json")
    assert done.returncode in (0, 1, 3), done.stderr
    return done.stdout
